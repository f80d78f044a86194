import type { Static } from 'typebox'
import { Type } from '../kubernetes/object/index.ts'
import { truncateText } from '../kubernetes/util/index.ts'
import { count } from './shared.ts'

/** Of the operations that a status lists. */
export const maxListedOperations = 20
/** Longer URNs are truncated in a status. */
const maxUrnChars = 1_024
/** Of the operations that a message names. */
const maxNamedOperations = 5

const maxNameChars = 200

/** `status.pendingOperations` of a Run. */
export const pendingOperationsSchema = Type.Object(
  {
    count: count('Number of these operations.'),
    operations: Type.Array(
      Type.Object({
        type: Type.String({
          maxLength: 64,
          description: 'What was being done with the resource: creating, updating, deleting or reading; engine ansible: running.',
        }),
        urn: Type.String({
          maxLength: maxUrnChars,
          description: 'URN of the resource; engines terraform and opentofu: its address; engine ansible: the host and the task.',
        }),
      }),
      { maxItems: maxListedOperations, description: `The first ${maxListedOperations} of them.` },
    ),
  },
  {
    description:
      'Operations that had begun when the engine ended, so that only the provider knows their result. Unset: there are none. Engine pulumi: spec.pulumi.pendingCreates of the Stack decides what happens to creations; the next Run finds out about the others. Engines terraform and opentofu: creations, as the worker has reported them at most half a second before it was lost; while the Run is active, those in progress. The next Run creates these resources again, so they may exist twice: docs/state.md. Engine ansible: tasks, which the next Run executes again.',
  },
)

export type PendingOperations = Static<typeof pendingOperationsSchema>

/** What a status lists of `operations`; `count` if there are more than are given. Undefined: there are none. */
export function listPendingOperations(
  operations: readonly { readonly type: string; readonly urn: string }[],
  count = operations.length,
): PendingOperations | undefined {
  if (count === 0) return undefined
  const listed = operations.slice(0, maxListedOperations)
  return { count, operations: listed.map(({ type, urn }) => ({ type: truncateText(type, 63), urn: truncateText(urn, maxUrnChars - 1) })) }
}

/** `2 operations were interrupted, and their results are unknown: creating aws:s3/bucket:Bucket logs, updating …`, of which 5 are named. */
export function formatPendingOperations({ count, operations }: PendingOperations): string {
  const named = operations.slice(0, maxNamedOperations).map(({ type, urn }) => `${type} ${formatUrn(urn)}`)
  const rest = count > named.length ? ` and ${count - named.length} more` : ''
  const what =
    count === 1
      ? '1 operation was interrupted, and its result is unknown'
      : `${count} operations were interrupted, and their results are unknown`
  return `${what}: ${named.join(', ')}${rest}`
}

/**
 * What a message of a Run of `engine` names of the operations that were interrupted. Pulumi records them in its state and does not repeat a creation; Terraform
 * and OpenTofu do neither. The tasks of Ansible are repeated.
 */
export function formatInterruption(engine: string, pending: PendingOperations): string {
  if (engine === 'pulumi' || engine === 'ansible') return formatPendingOperations(pending)
  const { count, operations } = pending
  const named = operations.slice(0, maxNamedOperations).map(({ urn }) => truncateText(urn, maxNameChars))
  const rest = count > named.length ? ` and ${count - named.length} more` : ''
  const what = count === 1 ? '1 creation was in progress, and the resource' : `${count} creations were in progress, and the resources`
  return `${what} may exist twice after the next Run: ${named.join(', ')}${rest}`
}

/** `aws:s3/bucket:Bucket logs` of `urn:pulumi:dev::shop::web:Group$aws:s3/bucket:Bucket::logs`. */
function formatUrn(urn: string): string {
  const [, , type = '', ...name] = urn.split('::')
  return truncateText(name.length === 0 ? urn : `${type.split('$').at(-1)} ${name.join('::')}`, maxNameChars)
}
