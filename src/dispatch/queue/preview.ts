import { IndexedHeap } from './indexed-heap.ts'
import { type Account, type Entry, isOlder, type Lane, type Shape, type TenantQueue } from './lanes.ts'
import type { RunQueue } from './run-queue.ts'

export type PreviewLine = {
  readonly entry: Entry
  /** 1 for the next one of its pool; undefined while a limit holds it back. */
  readonly position: number | undefined
}

export type Preview = {
  /** The first ones in the order in which they go. */
  readonly line: readonly PreviewLine[]
  /** Some of those that a limit holds back; they go when it lets them. */
  readonly held: readonly PreviewLine[]
}

/** What would go first of one tenant among its queues of one class, over the shapes of a pool. */
type Turn = { readonly account: Account; usage: number; readonly heads: IndexedHeap<Cursor> }
type Cursor = { readonly lane: Lane; readonly rest: Generator<Entry, void>; head: Entry }

/**
 * The order in which the Runs of a pool would start if nothing changed from now on and each cost the same: at most `limit`
 * of them, and as many of those that a limit holds back. O(tenants + limit · log n); the queue stays as it is.
 *
 * It is a forecast: workers of different kinds, Runs that are overdue, and everything that happens meanwhile change it.
 */
export function preview(queue: RunQueue, pool: string, limit: number, nowMs: number): Preview {
  const shapes = [...queue.shapes()].filter(({ needs }) => needs.pool === pool)
  const costOfStart = queue.costOfStart(nowMs)
  const line: PreviewLine[] = []
  const held: PreviewLine[] = []
  const usage = new Map<Account, number>()
  for (let rank = 0; shapes[0] && rank < shapes[0].classes.length; rank++) {
    const turns = turnsOf(queue, shapes, rank, usage, lane => {
      for (const entry of lane.runs.ordered()) {
        if (held.length >= limit) break
        held.push({ entry, position: undefined })
      }
    })
    while (line.length < limit) {
      const turn = turns.peek()
      if (!turn) break
      turns.delete(turn)
      const cursor = turn.heads.peek()!
      turn.heads.delete(cursor)
      line.push({ entry: cursor.head, position: line.length + 1 })
      turn.usage += costOfStart
      usage.set(turn.account, turn.usage)
      const next = cursor.rest.next()
      if (next.value) turn.heads.put({ ...cursor, head: next.value })
      if (turn.heads.size > 0) turns.put(turn)
    }
  }
  return { line, held }
}

function turnsOf(
  queue: RunQueue,
  shapes: readonly Shape[],
  rank: number,
  usage: ReadonlyMap<Account, number>,
  hold: (lane: Lane) => void,
): IndexedHeap<Turn> {
  const byAccount = new Map<Account, TenantQueue[]>()
  for (const shape of shapes) {
    for (const tenantQueue of shape.classes[rank]!.all.values()) {
      const others = byAccount.get(tenantQueue.account)
      if (others) others.push(tenantQueue)
      else byAccount.set(tenantQueue.account, [tenantQueue])
    }
  }
  const turns = new IndexedHeap<Turn>((a, b) => {
    const [left, right] = [a.usage / a.account.weight, b.usage / b.account.weight]
    return left !== right ? left < right : isOlder(a.heads.peek()!.head.request, b.heads.peek()!.head.request)
  })
  for (const [account, queues] of byAccount) {
    const heads = new IndexedHeap<Cursor>((a, b) =>
      a.lane.priority !== b.lane.priority ? a.lane.priority > b.lane.priority : isOlder(a.head.request, b.head.request),
    )
    for (const { all } of queues) {
      for (const lane of all.values()) {
        if (queue.laneHold(lane)) {
          hold(lane)
          continue
        }
        const rest = lane.runs.ordered()
        const first = rest.next()
        if (first.value) heads.put({ lane, rest, head: first.value })
      }
    }
    if (heads.size > 0) turns.put({ account, usage: usage.get(account) ?? account.usage, heads })
  }
  return turns
}
