import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { WorkerStatusPatch } from './lease/registration.ts'
import { reportDelayMs, type WorkerActivity, WorkerStatusReporter } from './worker-status-reporter.ts'

test('what could not be said is said again, as it is then, and after the end nothing is', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const said: WorkerStatusPatch[] = []
  const errors: unknown[] = []
  let does: WorkerActivity = { runs: [], idleSinceMs: 0 }
  let isAway = true
  const voice = new WorkerStatusReporter(
    () => does,
    async status => {
      if (isAway) throw new Error('the API is away')
      said.push(status)
    },
    error => errors.push(error),
  )
  const passes = async (ms: number) => {
    t.mock.timers.tick(ms)
    await turn()
  }

  voice.schedule()
  await passes(reportDelayMs)
  assert.deepEqual([said.length, errors.length], [0, 1])
  await passes(2_000)
  assert.equal(errors.length, 2, 'still away')
  isAway = false
  does = { runs: ['apps/network-1'], idleSinceMs: undefined }
  await passes(2_000)
  assert.equal(said.length, 0, 'each time after twice as long')
  await passes(2_000)
  assert.deepEqual(
    said.map(({ phase, runs }) => [phase, runs]),
    [['Busy', ['apps/network-1']]],
  )
  await passes(600_000)
  assert.equal(said.length, 1, 'once it is said, it is')

  isAway = true
  does = { runs: [], idleSinceMs: 0 }
  await voice.report()
  await voice.close()
  voice.schedule()
  isAway = false
  await passes(600_000)
  assert.equal(said.length, 1)
})
