/** Prints the CRDs as YAML: `node examples/kyma/print-crds.ts > examples/kyma/deploy/crds.yaml`. */
import { stringify } from 'yaml'
import { componentResource, kymaResource } from './kinds.ts'

export const crdsYaml = [kymaResource, componentResource].map(resource => `---\n${stringify(resource.toCrd())}`).join('')

if (import.meta.main) process.stdout.write(crdsYaml)
