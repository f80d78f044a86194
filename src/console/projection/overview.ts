import type { AttentionGroup, AttentionKind, OverviewFacts, RunRow, StackRow, WorkerRow } from '../protocol/index.ts'

const maxGroups = 50
const maxNamedStacks = 10
const maxRecentRuns = 20
/** A Stack that has been working for longer has no progress that a user would expect. */
const stuckAfterMs = 60 * 60_000

const order: readonly AttentionKind[] = ['Failed', 'AwaitingApproval', 'Stuck', 'Drifted']

/** The overview of what a user may see. */
export function overviewOf({
  stacks,
  runs,
  workers,
  nowMs,
}: {
  readonly stacks: Iterable<StackRow>
  readonly runs: Iterable<RunRow>
  readonly workers: Iterable<WorkerRow>
  readonly nowMs: number
}): OverviewFacts {
  const states: Partial<Record<StackRow['state'], number>> = {}
  const groups = new Map<string, StackRow[]>()
  let count = 0
  for (const stack of stacks) {
    count++
    states[stack.state] = (states[stack.state] ?? 0) + 1
    const kind = attentionOf(stack, nowMs)
    if (!kind) continue
    const key = `${kind}\n${stack.reason}\n${kind === 'Failed' ? withoutParticulars(stack) : ''}`
    const group = groups.get(key)
    if (group) group.push(stack)
    else groups.set(key, [stack])
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
  let [total, busy, draining] = [0, 0, 0]
  for (const { phase } of workers) {
    total++
    if (phase === 'Busy') busy++
    if (phase === 'Draining') draining++
  }
  return {
    stacks: count,
    states,
    attention: [...groups.values()]
      .map(group => attentionGroup(group, nowMs))
      .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || b.count - a.count || (a.reason < b.reason ? -1 : 1))
      .slice(0, maxGroups),
    queue: { length, ...(oldestMs !== undefined && { oldestMs }) },
    workers: { total, busy, draining },
    recent: recent.sort((a, b) => latestOf(b) - latestOf(a) || (a.key < b.key ? -1 : 1)).slice(0, maxRecentRuns),
  }
}

function attentionOf({ state, sinceMs, plan, isStalled }: StackRow, nowMs: number): AttentionKind | undefined {
  if (state === 'Deleting' && plan) return 'AwaitingApproval'
  if (state === 'Deleting' && isStalled) return 'Failed'
  if (state === 'Failed' || state === 'Failing' || state === 'EngineNotFound') return 'Failed'
  if (state === 'AwaitingApproval' || state === 'Drifted') return state
  const isWorking = state === 'Working' || state === 'Pending' || state === 'Deleting'
  return isWorking && sinceMs !== undefined && nowMs - sinceMs > stuckAfterMs ? 'Stuck' : undefined
}

function attentionGroup(group: StackRow[], nowMs: number): AttentionGroup {
  const sorted = group.sort((a, b) => (a.sinceMs ?? nowMs) - (b.sinceMs ?? nowMs) || (a.key < b.key ? -1 : 1))
  const first = sorted[0] as StackRow
  const states = [...new Set(sorted.map(({ state }) => state))].sort()
  return {
    kind: attentionOf(first, nowMs) as AttentionKind,
    reason: first.reason,
    message: first.message,
    count: sorted.length,
    ...(first.sinceMs !== undefined && { sinceMs: first.sinceMs }),
    stacks: sorted.slice(0, maxNamedStacks).map(({ namespace, name, plan }) => ({
      namespace,
      name,
      ...(plan && { plan: { add: plan.add, change: plan.change, destroy: plan.destroy } }),
    })),
    filter: `state:${states.join(',').toLowerCase()} reason:${first.reason}`,
  }
}

/** The message without what differs although the error is the same: names of Runs and of the Stack, quoted text, digests and digits. */
const withoutParticulars = ({ message, namespace, name }: StackRow) =>
  message
    .replace(/"[^"]*"|'[^']*'|\bRun [a-z0-9.-]*\d|\b[0-9a-f]{7,}\b|\d+/g, '*')
    .replace(/[\w.-]+/g, word => (word === name || word === namespace ? '*' : word))

const latestOf = ({ finishedMs, startedMs, createdMs }: RunRow) => finishedMs ?? startedMs ?? createdMs
