import { StatusError } from '../../../kubernetes/object/index.ts'
import { rightsOf } from '../rights-of.ts'
import type { Call, Routes } from '../route.ts'
import { editYaml, readYaml } from './edit-yaml.ts'
import { resourceDetails } from './resource-details.ts'
import { stackEvents } from './stack-events.ts'
import { stackGraph } from './stack-graph.ts'
import { revealOutput, stackOutputs } from './stack-outputs.ts'
import type { StackRequest } from './stack-request.ts'
import { stackResources } from './stack-resources.ts'
import { stackVariables } from './stack-variables.ts'
import { stateDiff, stateVersions } from './state-versions.ts'

/** By method and what follows `stacks/NAMESPACE/NAME/`. */
const parts: Readonly<Record<string, (request: StackRequest) => Promise<unknown>>> = {
  'GET resources': stackResources,
  'GET resource': resourceDetails,
  'GET outputs': request => (request.rest.length === 0 ? stackOutputs(request) : revealOutput(request)),
  'GET variables': stackVariables,
  'GET versions': stateVersions,
  'GET diff': stateDiff,
  'GET events': stackEvents,
  'GET graph': stackGraph,
  'GET yaml': readYaml,
  'POST yaml': editYaml,
}

/** The parts of the page of a Stack, below `stacks/NAMESPACE/NAME/`. */
export const stackRoutes: Routes = { 'GET stacks': serveStack, 'POST stacks': serveStack }

async function serveStack(call: Call): Promise<unknown> {
  const { request, session, query, visibility, body, options, tasks } = call
  const [namespace = '', name = '', section = '', ...rest] = call.path
  const key = `${request.method} ${section}`
  const part = Object.hasOwn(parts, key) ? parts[key] : undefined
  if (!part || namespace === '' || name === '') throw new StatusError('NotFound', `the page of a Stack has no ${key}`)
  if (request.method !== 'GET') session.activeMs = Date.now()
  return await part({
    ...{ namespace, name, rest, query, body, visibility, tasks, projections: options.projections },
    ...{ client: await call.client(), rights: rightsOf(call, { namespace, name }) },
  })
}
