import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseShardSelector, shardHash, shardTest } from '../../object/index.ts'
import {
  bucketCount,
  bucketLabel,
  bucketLabelSelectorOf,
  bucketOf,
  bucketsWhere,
  labeledBucketOf,
  labelWithBucket,
  shardSelectorOf,
} from './bucket.ts'

test('the bucket of a UID is the top ten bits of its hash', () => {
  for (let count = 0; count < 1_000; count++) {
    const uid = randomUUID()
    equal(bucketOf(uid), Number(BigInt(`0x${shardHash(uid)}`) >> 54n))
  }
})

test('a shardSelector selects exactly the objects of its buckets, with one range per run of adjacent buckets', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.integer({ min: 0, max: bucketCount - 1 }), { minLength: 1, maxLength: 1_000 }),
      fc.array(fc.uuid()),
      (set, uids) => {
        const buckets = set.sort((a, b) => a - b)
        const selector = shardSelectorOf(buckets)
        if (selector === undefined) return equal(buckets.length, bucketCount)
        const parsed = parseShardSelector(selector)
        equal(parsed.ranges.length, buckets.filter(bucket => !buckets.includes(bucket + 1)).length)
        const isIn = shardTest(parsed)
        for (const uid of uids) equal(isIn(uid), buckets.includes(bucketOf(uid)), uid)
      },
    ),
    { numRuns: 50 },
  )
})

test('the selectors of the first, of the last and of all buckets', () => {
  equal(shardSelectorOf([0]), "shardRange(object.metadata.uid, '0x0000000000000000', '0x0040000000000000')")
  equal(shardSelectorOf([1_022, 1_023]), "shardRange(object.metadata.uid, '0xff80000000000000', '0x10000000000000000')")
  equal(shardSelectorOf(bucketsWhere(() => true)), undefined)
  throws(() => shardSelectorOf([]), /at least one bucket/)
  equal(bucketLabelSelectorOf([3, 17]), 'sharding.oarlock.dev/bucket in (3,17)')
  equal(bucketLabelSelectorOf([3], 'app=x'), 'app=x,sharding.oarlock.dev/bucket in (3)')
  equal(bucketLabelSelectorOf([]), 'sharding.oarlock.dev/bucket in (none)')
})

test('reads the bucket of a label and ignores what is no bucket', () => {
  const key = 'sharding.oarlock.dev/bucket'
  deepEqual(
    ['0', '1023', '1024', '-1', '1e2', '', '042'].map(text => labeledBucketOf({ [key]: text })),
    [0, 1_023, undefined, undefined, undefined, undefined, undefined],
  )
  equal(labeledBucketOf(undefined), undefined)
})

test('random UUIDs are spread evenly: no quarter of the buckets has more than 5 % above its share', () => {
  const counts = [0, 0, 0, 0]
  for (let count = 0; count < 40_000; count++) counts[Math.floor(bucketOf(randomUUID()) / 256)]!++
  ok(Math.max(...counts) < 10_500, counts.join())
})

// Why keys are never divided by equal ranges of the hash of their namespace: names that differ in their last characters only have nearly
// the same upper bits, because FNV-1a multiplies once after the last byte.
test('the hashes of namespaces team-0 to team-99 fall into 2 of 1,024 buckets, 90 and 10 in either half', () => {
  const names = Array.from({ length: 100 }, (_, index) => `team-${index}`)
  const buckets = names.map(bucketOf)
  equal(new Set(buckets).size, 2)
  const lower = buckets.filter(bucket => bucket < bucketCount / 2).length
  deepEqual([Math.min(lower, 100 - lower), Math.max(lower, 100 - lower)], [10, 90])
})

test('a written object gets the bucket of the key if it has none, or if its owner is in that bucket by UID or by label', () => {
  const uid = 'owner'
  const own = bucketOf(uid)
  const [other, third] = [(own + 1) % bucketCount, (own + 2) % bucketCount]
  const written = (bucket: number, label: number | undefined, ofOwner?: number, controller = true) => {
    const metadata = {
      ...{ name: 'a', ...(label !== undefined && { labels: { [bucketLabel]: String(label) } }) },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Boat', name: 'boat', uid, controller }],
    }
    const labels = ofOwner === undefined ? undefined : { [bucketLabel]: String(ofOwner) }
    return labeledBucketOf(labelWithBucket(bucket, { metadata }, owner => (owner.uid === uid ? labels : undefined)).metadata.labels)
  }
  equal(written(own, undefined), own)
  equal(written(other, undefined), other)
  equal(written(own, other), own, 'the owner is the root')
  equal(written(other, third, other), other, 'the owner is owned by the root')
  equal(written(other, third, third), third, 'the owner belongs to another root')
  equal(written(other, third), third, 'nothing is known of the owner')
  equal(written(own, undefined, undefined, false), undefined, 'nothing controls it')
})
