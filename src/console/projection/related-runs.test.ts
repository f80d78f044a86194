import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { RunRow } from '../protocol/index.ts'
import { relatedRuns } from './related-runs.ts'

const run = (epoch: number, trigger: string, more: Partial<RunRow> = {}) =>
  ({ key: `a/one-${epoch}`, name: `one-${epoch}`, epoch, trigger, type: 'Apply', ...more }) as RunRow
const runs = [
  run(5, 'Approved', { planRun: 'one-4' }),
  run(1, 'NewGeneration'),
  run(3, 'RecoveredFrom'),
  run(2, 'Retry'),
  run(4, 'SourceChanged', { type: 'Plan' }),
]

for (const { name, epoch, attempts, planRun, applyRun } of [
  { name: 'the first of three attempts', epoch: 1, attempts: [1, 2, 3] },
  { name: 'the one in the middle', epoch: 2, attempts: [1, 2, 3] },
  { name: 'the last', epoch: 3, attempts: [1, 2, 3] },
  { name: 'a plan that another Run applies', epoch: 4, attempts: [], applyRun: 5 },
  { name: 'an Apply of an approved plan', epoch: 5, attempts: [], planRun: 4 },
])
  test(`related Runs of ${name}`, () => {
    const found = relatedRuns(
      runs.find(other => other.epoch === epoch),
      runs,
    )
    deepEqual(
      { attempts: found.attempts.map(other => other.epoch), planRun: found.planRun?.epoch, applyRun: found.applyRun?.epoch },
      { attempts, planRun, applyRun },
    )
  })

test('a Run whose first attempts were deleted, and one that is not known', () => {
  deepEqual(relatedRuns(run(9, 'Retry'), [run(9, 'Retry')]), { attempts: [] })
  deepEqual(relatedRuns(undefined, runs), { attempts: [] })
})
