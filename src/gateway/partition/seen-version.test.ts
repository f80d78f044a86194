import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { nextRevision, revisionEpochMs } from '../../kubernetes/util/index.ts'
import { SeenVersion } from './seen-version.ts'

test('the highest version counts, and one that other partitions would reject does not', () => {
  const nowMs = revisionEpochMs + 1_000_000
  const seen = new SeenVersion(() => nowMs)
  const [early, late, ahead] = [-1_000, 60_000, 60_001].map(ms => nextRevision(0, nowMs + ms, 3)) as [number, number, number]
  for (const version of [early, undefined, 'x', 12, ['1'], String(ahead), ahead]) seen.raise(version)
  equal(seen.value, early)
  seen.raise(String(late))
  seen.raise(early)
  equal(seen.value, late)
})
