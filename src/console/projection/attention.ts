import { createHash } from 'node:crypto'
import type { AttentionKind, Filter, StackRow } from '../protocol/index.ts'

/** A Stack that has been working for longer has no progress that a user would expect. */
const stuckAfterMs = 60 * 60_000
/** Of a SHA-256: enough that two groups of one fleet do not have the same. */
const groupDigits = 12

/** Why a Stack needs a user; undefined: it does not. */
function attentionOf({ state, sinceMs, plan, isStalled }: StackRow, nowMs: number): AttentionKind | undefined {
  if (state === 'Deleting' && plan) return 'AwaitingApproval'
  if (state === 'Deleting' && isStalled) return 'Failed'
  if (state === 'Failed' || state === 'Failing' || state === 'EngineNotFound') return 'Failed'
  if (state === 'AwaitingApproval' || state === 'Drifted') return state
  const isWorking = state === 'Working' || state === 'Pending' || state === 'Deleting'
  return isWorking && sinceMs !== undefined && nowMs - sinceMs > stuckAfterMs ? 'Stuck' : undefined
}

/** What the Stacks of one group of the overview have in common. They have the same `id`. */
export type AttentionCause = { readonly kind: AttentionKind; readonly id: string }

/** Undefined: the Stack needs no user. */
export function attentionCause(row: StackRow, nowMs: number): AttentionCause | undefined {
  const kind = attentionOf(row, nowMs)
  return kind && { kind, id: [kind, row.reason, kind === 'Failed' ? withoutParticulars(row) : ''].join('\n') }
}

/** The value of the filter field `attention` for the Stacks of a group, such as `failed-1f0c2a9b3d4e`; `none` for those that need no user. */
export function attentionValue(cause: AttentionCause | undefined): string {
  if (cause === undefined) return 'none'
  return `${cause.kind.toLowerCase()}-${createHash('sha256').update(cause.id).digest('hex').slice(0, groupDigits)}`
}

/** The rows with the field `attention`, if the filter asks for it: 10,000 that need a user take about 25 ms. */
export function withAttention(rows: Iterable<StackRow>, { terms }: Filter, nowMs: number): Iterable<StackRow> {
  if (!terms.some(({ field }) => field === 'attention')) return rows
  const values = new Map<string | undefined, string>()
  return Iterator.from(rows).map(row => {
    const cause = attentionCause(row, nowMs)
    const attention = values.get(cause?.id) ?? attentionValue(cause)
    values.set(cause?.id, attention)
    return { ...row, attention }
  })
}

/** The message without what differs although the error is the same: names of Runs and of the Stack, quoted text, digests and digits. */
const withoutParticulars = ({ message, namespace, name }: StackRow) =>
  message
    .replace(/"[^"]*"|'[^']*'|\bRun [a-z0-9.-]*\d|\b[0-9a-f]{7,}\b|\d+/g, '*')
    .replace(/[\w.-]+/g, word => (word === name || word === namespace ? '*' : word))
