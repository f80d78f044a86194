import { Heap } from '../../../kubernetes/util/index.ts'
import { isOlder, type RunQueueEntry, type TenantAccount, type TenantQueue } from './queue-tree.ts'
import type { RunQueue } from './run-queue.ts'

export type PreviewEntry = {
  readonly entry: RunQueueEntry
  /** 1 for the next Run of its pool; undefined while a limit blocks the Run. */
  readonly position: number | undefined
}

export type QueuePreview = {
  /** The first Runs in scheduling order. */
  readonly ordered: readonly PreviewEntry[]
  /** Some of the Runs that a limit blocks; they have no position. */
  readonly blocked: readonly PreviewEntry[]
}

/** Position in the Runs of one tenant and one priority level, across the equivalence classes of a pool. */
type TenantCursor = {
  readonly account: TenantAccount
  readonly queues: readonly TenantQueue[]
  usage: number
  head: RunQueueEntry
  rest?: Iterator<RunQueueEntry, void>
}

/**
 * The order in which the Runs of a pool would start if nothing changed and each had the same cost: at most `limit` ordered Runs and at most
 * `limit` blocked ones. O(tenants + limit · log n). Does not modify the queue.
 *
 * It is a forecast: unequal workers, starved Runs and later arrivals change the order.
 */
export function previewQueueOrder(queue: RunQueue, pool: string, limit: number, nowMs: number): QueuePreview {
  const equivalenceClasses = [...queue.equivalenceClasses()].filter(({ requirements }) => requirements.pool === pool)
  const startCost = queue.scaledStartCost(nowMs)
  const ordered: PreviewEntry[] = []
  const blocked: PreviewEntry[] = []
  const usage = new Map<TenantAccount, number>()
  for (let rank = 0; equivalenceClasses[0] && rank < equivalenceClasses[0].levels.length; rank++) {
    const tenantQueues = equivalenceClasses.flatMap(equivalenceClass => [...equivalenceClass.levels[rank]!.all.values()])
    for (const entry of blockedEntries(queue, tenantQueues, limit - blocked.length)) blocked.push({ entry, position: undefined })
    if (ordered.length >= limit) continue
    const cursors = tenantCursors(queue, tenantQueues, usage)
    for (let cursor = cursors.peek(); cursor && ordered.length < limit; cursor = cursors.peek()) {
      ordered.push({ entry: cursor.head, position: ordered.length + 1 })
      cursor.usage += startCost
      usage.set(cursor.account, cursor.usage)
      // Most tenants appear only once in a preview, so the rest of their Runs is ordered only on demand.
      cursor.rest ??= inOrder(cursor.queues, cursor.head)
      const next = cursor.rest.next().value
      if (next) {
        cursor.head = next
        cursors.put(cursor)
      } else cursors.delete(cursor)
    }
  }
  return { ordered, blocked }
}

function tenantCursors(queue: RunQueue, queues: readonly TenantQueue[], usage: ReadonlyMap<TenantAccount, number>): Heap<TenantCursor> {
  const cursors = new Heap<TenantCursor>(
    (a, b) => {
      const [left, right] = [a.usage / a.account.weight, b.usage / b.account.weight]
      return left !== right ? left < right : isOlder(a.head.request, b.head.request)
    },
    { tracked: true },
  )
  const open = queues.filter(({ account, eligible }) => eligible.size > 0 && !queue.isAtLimit(account))
  for (const [account, own] of Map.groupBy(open, one => one.account)) {
    const heads = own.map(({ eligible }) => eligible.peek()!.runs.peek()!)
    const head = heads.reduce((best, one) => (entryPrecedes(one, best) ? one : best))
    cursors.put({ account, queues: own, usage: usage.get(account) ?? account.usage, head })
  }
  return cursors
}

/** The Runs of one tenant after `first`, in scheduling order. */
function* inOrder(queues: readonly TenantQueue[], first: RunQueueEntry): Generator<RunQueueEntry, void> {
  const cursors = new Heap<{ head: RunQueueEntry; rest?: Iterator<RunQueueEntry, void> }>((a, b) => entryPrecedes(a.head, b.head), {
    tracked: true,
  })
  for (const { eligible } of queues) for (const fifo of eligible.members()) cursors.put({ head: fifo.runs.peek()! })
  for (let cursor = cursors.peek(); cursor; cursor = cursors.peek()) {
    if (cursor.head !== first) yield cursor.head
    if (!cursor.rest) {
      cursor.rest = cursor.head.fifo.runs.ordered()
      cursor.rest.next()
    }
    const next = cursor.rest.next().value
    if (next) {
      cursor.head = next
      cursors.put(cursor)
    } else cursors.delete(cursor)
  }
}

function* blockedEntries(queue: RunQueue, queues: readonly TenantQueue[], limit: number): Generator<RunQueueEntry, void> {
  let remaining = limit
  for (const { account, eligible, all } of queues) {
    if (remaining <= 0) return
    const isTenantBlocked = queue.isAtLimit(account)
    if (!isTenantBlocked && eligible.size === all.size) continue
    for (const fifo of all.values()) {
      if (!isTenantBlocked && !queue.limitReached(fifo)) continue
      for (const entry of fifo.runs.ordered()) {
        if (remaining-- <= 0) return
        yield entry
      }
    }
  }
}

function entryPrecedes(
  { request: a, fifo: { priority: one } }: RunQueueEntry,
  { request: b, fifo: { priority: other } }: RunQueueEntry,
): boolean {
  return one !== other ? one > other : isOlder(a, b)
}
