import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { RunRow } from '../../protocol/index.ts'
import type { RunObject } from './run-object.ts'
import { runPhases } from './run-phases.ts'

const at = (second: number) => new Date(second * 1_000).toISOString()
const row = (phase: string, more: Partial<RunRow> = {}) => ({ phase, name: 'a-2', worker: 'w', ...more }) as RunRow
const run = (spec: RunObject['spec'], status: RunObject['status']): RunObject => ({
  metadata: { creationTimestamp: at(100) },
  spec: spec ?? {},
  status: status ?? {},
})
const short = (facts: Parameters<typeof runPhases>[0]) =>
  runPhases(facts).map(({ label, fromMs, toMs, tone, detail }) => [
    label,
    fromMs / 1_000,
    toMs === undefined ? undefined : toMs / 1_000,
    tone,
    detail,
  ])

test('a Run that waits shows why, and one that is assigned its worker', () => {
  deepEqual(short({ row: row('Queued'), object: run({}, { reason: 'PoolLimit', message: 'the pool has its maximum' }) }), [
    ['Queue', 100, undefined, 'idle', 'the pool has its maximum'],
  ])
  deepEqual(short({ row: row('Assigned'), object: run({ assignedAt: at(130) }, {}) }), [
    ['Queue', 100, 130, 'idle', undefined],
    ['Start', 130, undefined, 'busy', 'worker w'],
  ])
})

test('phases that have ended are as long as the worker measured them, and the one of now is open', () => {
  const status = {
    startedAt: at(131),
    phaseSeconds: { preparing: 0.5 },
    dependencies: { manager: 'npm', source: 'Cached', seconds: 0.2, bytes: 1 },
  } as const
  deepEqual(short({ row: row('Planning'), object: run({ assignedAt: at(130) }, status) }).slice(2), [
    ['Prepare', 131, 131.5, 'good', 'npm packages cached in 0.2s'],
    ['Plan', 131.5, undefined, 'busy', undefined],
  ])
})

test('an Apply of an approved plan shows the plan and how long the approval took', () => {
  const planRun = row('Succeeded', { name: 'a-1', startedMs: 10_000, finishedMs: 20_000 })
  const object = run(
    { assignedAt: at(101), approvedPlan: { runName: 'a-1', user: 'anna', at: at(99) } },
    { startedAt: at(101), finishedAt: at(103), phaseSeconds: { preparing: 1, planning: 0.25, applying: 1 } },
  )
  deepEqual(short({ row: row('Succeeded'), object, planRun }), [
    ['Plan', 10, 20, 'good', 'a-1'],
    ['Approval', 20, 99, 'attention', 'by anna'],
    ['Queue', 100, 101, 'idle', undefined],
    ['Start', 101, 101, 'idle', 'worker w'],
    ['Prepare', 101, 102, 'good', undefined],
    ['Plan', 102, 102.25, 'good', undefined],
    ['Apply', 102.25, 103.25, 'good', undefined],
  ])
})

test('the phase in which a Run failed is marked; a lost Run shows the time until that was found', () => {
  const failed = run({ assignedAt: at(101) }, { startedAt: at(101), finishedAt: at(103), phaseSeconds: { preparing: 1, planning: 0.9 } })
  deepEqual(short({ row: row('Failed'), object: failed }).slice(2), [
    ['Prepare', 101, 102, 'good', undefined],
    ['Plan', 102, 102.9, 'bad', undefined],
  ])
  const lost = run({ assignedAt: at(101) }, { startedAt: at(101), finishedAt: at(151), phaseSeconds: { preparing: 1 } })
  deepEqual(short({ row: row('Lost'), object: lost }).slice(2), [
    ['Prepare', 101, 102, 'good', undefined],
    ['Lost', 102, 151, 'bad', undefined],
  ])
})

test('a Run of an earlier version, one that was canceled in the queue, and one that is not known', () => {
  deepEqual(short({ row: row('Succeeded'), object: run({ assignedAt: at(101) }, { startedAt: at(102), finishedAt: at(110) }) }).slice(2), [
    ['Run', 102, 110, 'good', undefined],
  ])
  deepEqual(short({ row: row('Canceled'), object: run({}, { finishedAt: at(120) }) }), [['Queue', 100, 120, 'idle', undefined]])
  deepEqual(short({}), [])
})
