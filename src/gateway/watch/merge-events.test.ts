import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { EventMerge, type ProgressRequest, type SourceEvent } from './merge-events.ts'

const limits = { maxBufferedBytes: () => 1_000 }
const event = (revision: number, bytes = 1): SourceEvent => ({ revision, line: new Uint8Array(bytes) })
const revisions = (events: readonly SourceEvent[]) => events.map(({ revision }) => revision)

test('an event waits until every source has reported that it has nothing earlier (guarantee 2)', () => {
  const merge = new EventMerge(['a', 'b', 'c'], 10, limits)
  merge.add('a', event(12))
  deepEqual(merge.take(), [])
  merge.advance('b', 12)
  deepEqual(merge.take(), [])
  merge.add('c', event(11))
  deepEqual(revisions(merge.take()), [11])
  merge.add('c', event(13))
  deepEqual(revisions(merge.take()), [12])
  equal(merge.watermark, 12)
})

test('sources are asked for progress only if an event of another one waits, and once per connection (guarantee 4)', () => {
  const merge = new EventMerge(['a', 'b', 'c'], 10, limits)
  deepEqual(merge.progressRequests(), [])
  merge.advance('a', 20)
  deepEqual(merge.progressRequests(), [])
  deepEqual(merge.progressRequests(10), [])
  merge.add('a', event(25))
  const asked: ProgressRequest[] = [
    { source: 'b', revision: 25 },
    { source: 'c', revision: 25 },
  ]
  deepEqual(merge.progressRequests(), asked)
  deepEqual(merge.progressRequests(), [])
  // More events wait for the same answer.
  merge.add('a', event(30))
  deepEqual(merge.progressRequests(), [])
  merge.advance('b', 25)
  deepEqual(merge.progressRequests(), [{ source: 'b', revision: 30 }])
  merge.reopened('c')
  deepEqual(merge.progressRequests(), [{ source: 'c', revision: 30 }])
})

test('after a connection broke, a source continues where it was, and what it repeats is ignored (guarantee 1)', () => {
  const merge = new EventMerge(['a', 'b'], 10, limits)
  merge.add('a', event(11))
  merge.add('a', event(12))
  equal(merge.resumeFrom('a'), 12)
  merge.add('a', event(12))
  merge.advance('b', 20)
  deepEqual(revisions(merge.take()), [11, 12])
})

test('what waits is bounded', () => {
  const merge = new EventMerge(['a', 'b'], 0, limits)
  for (let revision = 1; revision <= 1_001; revision++) merge.add('a', event(revision))
  ok(merge.isTooLarge)
  merge.advance('b', 5_000)
  equal(merge.take().length, 1_001)
  ok(!merge.isTooLarge)
})

test('two sources with the same revision, which the numbers of partitions exclude, are reported as a bug', () => {
  const merge = new EventMerge(['a', 'b'], 0, limits)
  merge.add('a', event(1))
  merge.add('b', event(1))
  throws(() => merge.take(), /bug: revision 1 after 1/)
  throws(() => new EventMerge([], 0, limits), RangeError)
  throws(() => merge.advance('z', 1), /no source z/)
})
