import { endedPhases } from '../../api/index.ts'
import type { AttentionGroup, AttentionKind, OverviewFacts, RunRow, StackRow, WorkerRow } from '../protocol/index.ts'
import { type AttentionCause, attentionCause, attentionValue } from './attention.ts'

const maxGroups = 50
const maxNamedStacks = 10
const maxRecentRuns = 20

const order: readonly AttentionKind[] = ['Failed', 'AwaitingApproval', 'Stuck', 'Drifted']

/** The overview of what a user may see. */
export function overviewOf({
  stacks,
  runs,
  allRuns,
  workers,
  nowMs,
}: {
  readonly stacks: Iterable<StackRow>
  readonly runs: Iterable<RunRow>
  /** Also those that the user may not see: they make workers busy. */
  readonly allRuns: Iterable<RunRow>
  /** Undefined: the user may not list them. */
  readonly workers: Iterable<WorkerRow> | undefined
  readonly nowMs: number
}): Omit<OverviewFacts, 'isWhole'> {
  const states: Partial<Record<StackRow['state'], number>> = {}
  const groups = new Map<string, { readonly cause: AttentionCause; readonly rows: StackRow[] }>()
  let count = 0
  let needAttention = 0
  for (const stack of stacks) {
    count++
    states[stack.state] = (states[stack.state] ?? 0) + 1
    const cause = attentionCause(stack, nowMs)
    if (cause === undefined) continue
    needAttention++
    const group = groups.get(cause.id)
    if (group) group.rows.push(stack)
    else groups.set(cause.id, { cause, rows: [stack] })
  }
  let length = 0
  let oldestMs: number | undefined
  const recent: RunRow[] = []
  for (const run of runs) {
    recent.push(run)
    if (run.phase !== 'Queued') continue
    length++
    oldestMs = Math.min(oldestMs ?? Number.POSITIVE_INFINITY, run.createdMs)
  }
  return {
    stacks: count,
    states,
    needAttention: { stacks: needAttention, groups: groups.size },
    attention: [...groups.values()]
      .map(({ cause, rows }) => attentionGroup(cause, rows, nowMs))
      .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || b.count - a.count || (a.reason < b.reason ? -1 : 1))
      .slice(0, maxGroups),
    queue: { length, ...(oldestMs !== undefined && { oldestMs }) },
    ...(workers && { workers: workerCounts(workers, allRuns) }),
    recent: recent.sort((a, b) => latestOf(b) - latestOf(a) || (a.key < b.key ? -1 : 1)).slice(0, maxRecentRuns),
  }
}

/** A worker is busy while an active Run names it, as in the charts: a short Run ends before its worker has reported that it is busy. */
function workerCounts(workers: Iterable<WorkerRow>, runs: Iterable<RunRow>): NonNullable<OverviewFacts['workers']> {
  const occupied = new Set<string>()
  for (const { worker, phase } of runs)
    if (worker !== undefined && !(endedPhases as readonly string[]).includes(phase)) occupied.add(worker)
  let [total, busy, draining] = [0, 0, 0]
  for (const { name, phase } of workers) {
    total++
    if (occupied.has(name)) busy++
    if (phase === 'Draining') draining++
  }
  return { total, busy, draining }
}

function attentionGroup(cause: AttentionCause, rows: StackRow[], nowMs: number): AttentionGroup {
  const sorted = rows.sort((a, b) => (a.sinceMs ?? nowMs) - (b.sinceMs ?? nowMs) || (a.key < b.key ? -1 : 1))
  const first = sorted[0] as StackRow
  return {
    kind: cause.kind,
    reason: first.reason,
    message: first.message,
    count: sorted.length,
    ...(first.sinceMs !== undefined && { sinceMs: first.sinceMs }),
    stacks: sorted.slice(0, maxNamedStacks).map(({ namespace, name, plan }) => ({
      namespace,
      name,
      ...(plan && { plan: { add: plan.add, change: plan.change, destroy: plan.destroy } }),
    })),
    filter: `attention:${attentionValue(cause)}`,
  }
}

const latestOf = ({ finishedMs, startedMs, createdMs }: RunRow) => finishedMs ?? startedMs ?? createdMs
