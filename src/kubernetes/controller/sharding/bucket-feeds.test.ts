import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { bucketCount, bucketsWhere } from './bucket.ts'
import { type BucketFeed, BucketFeeds } from './bucket-feeds.ts'

const flagsOf = (...buckets: number[]) => Uint8Array.from({ length: bucketCount }, (_, bucket) => (buckets.includes(bucket) ? 1 : 0))
const bucketsOf = (flags: Uint8Array) => bucketsWhere(bucket => flags[bucket] === 1)
const openOf = (feeds: BucketFeeds) => [...feeds.open].map(({ buckets }) => bucketsOf(buckets))

/** With a feed whose first list is complete. */
function filled(version: string, ...buckets: number[]): { feeds: BucketFeeds; feed: BucketFeed } {
  const feeds = new BucketFeeds()
  feeds.setWanted(flagsOf(...buckets))
  const feed = feeds.adjust().started!
  equal(feeds.received(feed, version), true)
  return { feeds, feed }
}

test('gained buckets get a feed of their own, which is merged at the lowest version when its list is complete', () => {
  const { feeds, feed } = filled('100', 1, 2)
  deepEqual(feeds.setWanted(flagsOf(1, 2, 3)), [])
  const { stopped, started } = feeds.adjust()
  deepEqual([stopped, bucketsOf(started!.buckets), started!.resumed], [[], [3], undefined])
  equal(feeds.isFilled, false)
  deepEqual(feeds.merge(), { stopped: [], started: undefined })
  equal(feeds.received(started!, '200'), true)
  deepEqual(bucketsOf(feeds.synced), [1, 2, 3])
  const merged = feeds.merge()
  deepEqual(merged.stopped, [feed, started])
  equal(merged.started?.resumed?.resourceVersion, '100')
  deepEqual(
    [1, 2, 3].map(bucket => merged.started?.resumed?.receivedVersions[bucket]),
    ['100', '100', '200'],
  )
  // Resumed: nothing is filled again.
  equal(feeds.received(merged.started!, '210'), false)
  equal(feeds.receivedVersion, '210')
  deepEqual(feeds.merge(), { stopped: [], started: undefined })
})

test('a bucket that is lost and gained again is listed again, also while its feed is still open', () => {
  const { feeds, feed } = filled('100', 1, 2)
  deepEqual(feeds.setWanted(flagsOf(1)), [2])
  deepEqual(feeds.adjust(), { stopped: [], started: undefined })
  feeds.setWanted(flagsOf(1, 2))
  const { started } = feeds.adjust()
  deepEqual(openOf(feeds), [[1], [2]])
  deepEqual(bucketsOf(feeds.synced), [1])
  feeds.received(started!, '300')
  const merged = feeds.merge()
  deepEqual(merged.stopped, [feed, started])
  deepEqual(openOf(feeds), [[1, 2]])
})

test('a feed of which nothing is wanted ends, and what it still delivers fills nothing', () => {
  const feeds = new BucketFeeds()
  feeds.setWanted(flagsOf(1))
  const { started } = feeds.adjust()
  feeds.setWanted(flagsOf())
  deepEqual(feeds.adjust(), { stopped: [started], started: undefined })
  equal(feeds.received(started!, '100'), false)
  deepEqual([bucketsOf(feeds.synced), feeds.receivedVersion, feeds.isFilled], [[], '', true])
})

test('a feed that is wider than what is wanted is narrowed by a merge without a list', () => {
  const { feeds, feed } = filled('100', 1, 2)
  feeds.setWanted(flagsOf(1))
  feeds.adjust()
  const { stopped, started } = feeds.merge()
  deepEqual([stopped, bucketsOf(started!.buckets), started!.resumed?.resourceVersion], [[feed], [1], '100'])
  deepEqual(bucketsOf(feeds.synced), [1])
})
