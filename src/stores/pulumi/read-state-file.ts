import { type Deployment, DeploymentError, parseUntypedDeployment, type UntypedDeployment } from './deployment.ts'
import { parseUrn } from './urn.ts'

/** A state from a file. `stack` is `<project>/<stack>` as its resources are named; undefined without resources. */
export type PulumiStateFile = { state: UntypedDeployment & { deployment: Deployment }; stack: string | undefined }

/**
 * Reads what `pulumi stack export` writes, or a file of a file, S3, GCS or Azure backend, `.pulumi/stacks/…json`, which has the state in a checkpoint.
 * @throws {DeploymentError} for anything else.
 */
export function readStateFile(text: string): PulumiStateFile {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new DeploymentError('it is not JSON', { cause: error })
  }
  const { version, features, checkpoint, lineage } = (value ?? {}) as { [name: string]: unknown }
  if (lineage !== undefined) throw new DeploymentError('it is a state of Terraform or OpenTofu')
  const latest = checkpoint === undefined ? undefined : ((checkpoint as { latest?: unknown } | null)?.latest ?? null)
  const { deployment, ...others } = parseUntypedDeployment(
    latest === undefined ? text : JSON.stringify({ version, features, deployment: latest }),
  )
  const state = { ...others, deployment: deployment ?? {} }
  return { state, stack: stackOf(state.deployment) }
}

function stackOf({ resources }: Deployment): string | undefined {
  const { stack, project } = parseUrn(resources?.[0]?.urn ?? '')
  return project === '' ? undefined : `${project}/${stack}`
}
