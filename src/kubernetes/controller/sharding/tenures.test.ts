import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { bucketCount } from './bucket.ts'
import type { MemberOrders } from './member-core.ts'
import { Tenures } from './tenures.ts'

function ordersFor(version: number, buckets: readonly number[]): MemberOrders {
  const allowed = new Uint8Array(bucketCount)
  for (const bucket of buckets) allowed[bucket] = 1
  return { slot: 0, session: 'a.1', ringUid: 'r', version, fence: version, isMember: true, allowed, wanted: allowed }
}

test('each bucket has its own grace period, also while a reconcile of another one ignores its signal', () => {
  const tenures = new Tenures({ isValid: () => true, releaseGraceMs: 5_000 })
  tenures.setSynced(new Uint8Array(bucketCount).fill(1))
  tenures.apply(ordersFor(1, [1, 2, 3]), 0)
  const [one, two, three] = [1, 2, 3].map(bucket => tenures.find(bucket)!)
  for (const tenure of [one!, two!, three!]) tenures.begin(tenure)
  const aborted = () => [one, two, three].map(tenure => tenure?.signal.aborted)
  tenures.apply(ordersFor(2, [2, 3]), 1_000)
  deepEqual(tenures.abortExpired(1_000), { aborted: [], nextAtMs: 6_000 })
  tenures.apply(ordersFor(3, [3]), 5_900)
  deepEqual(tenures.abortExpired(6_000), { aborted: [1], nextAtMs: 10_900 })
  deepEqual(aborted(), [true, false, false])
  // The first one never ends.
  tenures.apply(ordersFor(4, []), 60_000)
  deepEqual(tenures.abortExpired(60_000), { aborted: [2], nextAtMs: 65_000 })
  deepEqual(tenures.abortExpired(65_000), { aborted: [3], nextAtMs: Number.POSITIVE_INFINITY })
  deepEqual(aborted(), [true, true, true])
  deepEqual(tenures.busy, [1, 2, 3])
  equal(three?.mayWrite(), false)
})
