import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { workerBucketCount, workerBucketOf } from '../../../api/index.ts'
import { decideWorkerView, selectorOfView } from './worker-view.ts'

const viewsOf = (partitions: readonly string[], viewsPerWorker?: number) =>
  partitions.map(name => decideWorkerView(name, partitions, viewsPerWorker))

for (const count of [2, 3, 5, 16]) {
  test(`every bucket is preferred by one of ${count} partitions and spare for another`, () => {
    const partitions = Array.from({ length: count }, (_, index) => `tenants-${index}`)
    const views = viewsOf(partitions)
    for (let bucket = 0; bucket < workerBucketCount; bucket++) {
      equal(views.filter(view => view?.preferred.has(String(bucket))).length, 1, `bucket ${bucket}`)
      equal(views.filter(view => view?.spare.has(String(bucket))).length, 1, `bucket ${bucket}`)
    }
    const share = workerBucketCount / count
    for (const { preferred } of views.map(view => view!))
      ok(preferred.size > 0 && preferred.size <= Math.ceil(share), `${preferred.size} of ${share}`)
  })
}

test('when a partition is added, most buckets stay where they are', () => {
  const ownerOf = (partitions: readonly string[], bucket: string) =>
    partitions.find(name => decideWorkerView(name, partitions)!.preferred.has(bucket))
  let moved = 0
  for (let bucket = 0; bucket < workerBucketCount; bucket++)
    if (ownerOf(['a', 'b', 'c'], String(bucket)) !== ownerOf(['a', 'b', 'c', 'd'], String(bucket))) moved++
  // A quarter has to move.
  ok(moved <= 26, `${moved} of ${workerBucketCount} moved`)
})

test('the order of the names is of no consequence', () =>
  deepEqual(decideWorkerView('b', ['a', 'b', 'c']), decideWorkerView('b', ['c', 'b', 'a'])))

test('the only partition sees all workers, without a selector', () => {
  equal(decideWorkerView('a', ['a']), undefined)
  equal(selectorOfView(undefined), 'oarlock.dev/worker-bucket')
})

test('with one view for each worker nothing is spare', () => equal(decideWorkerView('a', ['a', 'b'], 1)?.spare.size, 0))

test('a selector names the buckets in order, and selects nothing for a view without any', () => {
  const view = { preferred: new Set(['10', '2']), spare: new Set(['3']) }
  equal(selectorOfView(view), 'oarlock.dev/worker-bucket in (2,3,10)')
  equal(selectorOfView({ preferred: new Set(), spare: new Set() }), 'oarlock.dev/worker-bucket in (none)')
})

test('a partition without the role is rejected with those that have it', () => {
  throws(() => decideWorkerView('c', ['a', 'b']), /partition "c" has no role Tenants; those that have are a, b/)
})

test('workers whose names differ in a number are in all buckets evenly', () => {
  const counts = new Map<string, number>()
  for (let index = 0; index < 6_400; index++) {
    const bucket = workerBucketOf(`hollow-${index}`)
    counts.set(bucket, (counts.get(bucket) ?? 0) + 1)
  }
  equal(counts.size, workerBucketCount)
  for (const count of counts.values()) ok(count >= 60 && count <= 145, String(count))
})
