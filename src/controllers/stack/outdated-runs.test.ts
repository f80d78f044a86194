import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run, RunPhase, Stack } from '../../api/index.ts'
import { outdatedRuns } from './input-reader.ts'

const run = (epoch: number, phase: RunPhase) => ({ metadata: { name: `app-${epoch}` }, spec: { epoch }, status: { phase } }) as Run
const stack = (lastRunNumber: number, phase: RunPhase) =>
  ({ status: { lastRunNumber, lastRun: { name: `app-${lastRunNumber}`, type: 'Apply', phase } } }) as Pick<Stack, 'status'>

for (const [name, of, cached, expected] of [
  ['a Stack without Runs', {}, [], []],
  ['the active Run that the status names', stack(2, 'Applying'), [run(1, 'Succeeded'), run(2, 'Planning')], []],
  ['a Run that the cache knows and the status does not', stack(2, 'Failed'), [run(2, 'Failed'), run(3, 'Queued')], []],
  ['a missing Run that the status has as active', stack(2, 'Applying'), [run(1, 'Succeeded')], ['app-2']],
  ['a missing Run whose end the status has: it was deleted as old, or comes with the watch', stack(2, 'Succeeded'), [], []],
  ['a Run that is active in the cache although the status has its end', stack(2, 'Failed'), [run(2, 'Applying')], ['app-2']],
  ['an older Run that is active in the cache, and the missing newest', stack(3, 'Queued'), [run(2, 'Applying')], ['app-2', 'app-3']],
] as const) {
  test(`${expected.length > 0 ? 'reads from the server' : 'reads nothing for'} ${name}`, () =>
    deepEqual(outdatedRuns(of, [...cached]), expected))
}
