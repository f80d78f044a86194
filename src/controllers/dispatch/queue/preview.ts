import { Heap } from '../../../kubernetes/util/index.ts'
import { type Account, type Entry, isOlder, type TenantQueue } from './lanes.ts'
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

/** What would go next of one tenant among its queues of one class, over the shapes of a pool. */
type Turn = { readonly account: Account; readonly queues: readonly TenantQueue[]; usage: number; head: Entry; rest?: Iterator<Entry, void> }

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
    const ofClass = shapes.flatMap(shape => [...shape.classes[rank]!.all.values()])
    for (const entry of heldIn(queue, ofClass, limit - held.length)) held.push({ entry, position: undefined })
    if (line.length >= limit) continue
    const turns = turnsOf(queue, ofClass, usage)
    for (let turn = turns.peek(); turn && line.length < limit; turn = turns.peek()) {
      line.push({ entry: turn.head, position: line.length + 1 })
      turn.usage += costOfStart
      usage.set(turn.account, turn.usage)
      // Most tenants have no second turn, so what comes after the first is looked for only now.
      turn.rest ??= inOrder(turn.queues, turn.head)
      const next = turn.rest.next().value
      if (next) {
        turn.head = next
        turns.put(turn)
      } else turns.delete(turn)
    }
  }
  return { line, held }
}

function turnsOf(queue: RunQueue, queues: readonly TenantQueue[], usage: ReadonlyMap<Account, number>): Heap<Turn> {
  const turns = new Heap<Turn>(
    (a, b) => {
      const [left, right] = [a.usage / a.account.weight, b.usage / b.account.weight]
      return left !== right ? left < right : isOlder(a.head.request, b.head.request)
    },
    { tracked: true },
  )
  const open = queues.filter(({ account, lanes }) => lanes.size > 0 && !queue.isAtLimit(account))
  for (const [account, own] of Map.groupBy(open, one => one.account)) {
    const heads = own.map(({ lanes }) => lanes.peek()!.runs.peek()!)
    const head = heads.reduce((best, one) => (entryGoesBefore(one, best) ? one : best))
    turns.put({ account, queues: own, usage: usage.get(account) ?? account.usage, head })
  }
  return turns
}

/** The Runs of one tenant after `first`, in the order in which they go. */
function* inOrder(queues: readonly TenantQueue[], first: Entry): Generator<Entry, void> {
  const cursors = new Heap<{ head: Entry; rest?: Iterator<Entry, void> }>((a, b) => entryGoesBefore(a.head, b.head), { tracked: true })
  for (const { lanes } of queues) for (const lane of lanes.members()) cursors.put({ head: lane.runs.peek()! })
  for (let cursor = cursors.peek(); cursor; cursor = cursors.peek()) {
    if (cursor.head !== first) yield cursor.head
    if (!cursor.rest) {
      cursor.rest = cursor.head.lane.runs.ordered()
      cursor.rest.next()
    }
    const next = cursor.rest.next().value
    if (next) {
      cursor.head = next
      cursors.put(cursor)
    } else cursors.delete(cursor)
  }
}

function* heldIn(queue: RunQueue, queues: readonly TenantQueue[], limit: number): Generator<Entry, void> {
  let left = limit
  for (const { account, lanes, all } of queues) {
    if (left <= 0) return
    const isHeld = queue.isAtLimit(account)
    if (!isHeld && lanes.size === all.size) continue
    for (const lane of all.values()) {
      if (!isHeld && !queue.laneHold(lane)) continue
      for (const entry of lane.runs.ordered()) {
        if (left-- <= 0) return
        yield entry
      }
    }
  }
}

function entryGoesBefore({ request: a, lane: { priority: one } }: Entry, { request: b, lane: { priority: other } }: Entry): boolean {
  return one !== other ? one > other : isOlder(a, b)
}
