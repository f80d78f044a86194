import type { Deployment, UntypedDeployment } from '../../../stores/pulumi/index.ts'
import type { EngineContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { nameOf, typeOf } from './urn.ts'

const maxListed = 10

/** Resources whose creation was interrupted: the provider may have created them, and the state has no ID of them. */
export const pendingCreates = ({ pending_operations: pending }: Deployment): string[] =>
  (pending ?? []).filter(({ type }) => type === 'creating').map(({ resource }) => resource.urn)

/** `aws:s3/bucket:Bucket logs, aws:s3/bucket:Bucket data`, at most 10. */
export function formatPending(urns: readonly string[]): string {
  const listed = urns.slice(0, maxListed).map(urn => `${typeOf(urn)} ${nameOf(urn)}`)
  return urns.length > maxListed ? `${listed.join(', ')} and ${urns.length - maxListed} more` : listed.join(', ')
}

/**
 * What a Stack does with such resources until a user decides: nothing, because creating them again could leave the first ones without an owner.
 * @throws {EngineError} PendingCreates
 */
export function rejectPendingCreates({ spec }: Pick<EngineContext, 'spec'>, deployment: Deployment): void {
  const urns = pendingCreates(deployment)
  if (urns.length === 0 || spec.pulumi?.pendingCreates === 'Clear') return
  const what = urns.length === 1 ? 'the creation of 1 resource was' : `the creation of ${urns.length} resources was`
  throw new EngineError(
    'PendingCreates',
    `${what} interrupted, and it is unknown whether the provider finished: ${formatPending(urns)}; delete what exists there, then set spec.pulumi.pendingCreates to Clear, which creates them again`,
    { retryable: false },
  )
}

/** The state without them; undefined if it has none. Other operations that were interrupted have an ID: the CLI finds out what became of them. */
export function withoutPendingCreates(state: UntypedDeployment): UntypedDeployment | undefined {
  const { deployment } = state
  if (!deployment || pendingCreates(deployment).length === 0) return undefined
  const others = (deployment.pending_operations ?? []).filter(({ type }) => type !== 'creating')
  return { ...state, deployment: { ...deployment, pending_operations: others } }
}
