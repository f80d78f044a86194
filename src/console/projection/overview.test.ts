import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { RunRow, StackRow, StackState, WorkerRow } from '../protocol/index.ts'
import { matchingStacks } from './matching-stacks.ts'
import { overviewOf } from './overview.ts'
import type { RowTables } from './projections.ts'
import { RowTable } from './row-table.ts'
import { tableView } from './table-view.ts'

const nowMs = Date.parse('2026-06-01T10:00:00Z')
const hourMs = 3_600_000

const stack = (key: string, state: StackState, message = '', more: Partial<StackRow> = {}) => {
  const [namespace = '', name = ''] = key.split('/')
  return { key, namespace, name, state, message, reason: state, sinceMs: nowMs, ...more } as StackRow
}
const of = (stacks: StackRow[], { runs = [], workers = [] }: { runs?: Partial<RunRow>[]; workers?: Partial<WorkerRow>[] } = {}) =>
  overviewOf({ stacks, runs: runs as RunRow[], allRuns: runs as RunRow[], workers: workers as WorkerRow[], nowMs })
const groupsOf = (stacks: StackRow[]) => of(stacks).attention.map(({ kind, stacks: shown }) => [kind, ...shown.map(({ name }) => name)])

test('Stacks that failed with the same error are one group, although their names, Runs and numbers differ', () => {
  const denied = (name: string, hash: string, run: number) =>
    `Run ${name}-${hash}-${run} failed: Error: creating bucket "${name}-data": AccessDenied (request 0a1b2c3d4e${run}). Correct it with: oarlock run ${name} -n a`
  deepEqual(
    groupsOf([
      stack('a/web', 'Failed', denied('web', '9d99a', 1)),
      stack('a/mail', 'Failed', denied('mail', 'c577b', 12)),
      stack('a/other', 'Failed', 'Run other-1fe22-1 failed: the engine timed out'),
      stack('a/api', 'Failed', denied('api', '4af01', 3), { reason: 'Other' }),
    ]),
    [
      ['Failed', 'mail', 'web'],
      ['Failed', 'other'],
      ['Failed', 'api'],
    ],
  )
})

test('the most urgent is first: failed, awaiting approval, stuck, drifted; the rest needs no attention', () => {
  deepEqual(
    groupsOf([
      stack('a/drifted', 'Drifted'),
      stack('a/stuck', 'Working', '', { sinceMs: nowMs - hourMs - 1 }),
      stack('a/works', 'Working', '', { sinceMs: nowMs - hourMs }),
      stack('a/waits', 'AwaitingApproval', 'Plan a of Run waits-1'),
      stack('a/waits-too', 'AwaitingApproval', 'Plan b of Run waits-too-1'),
      stack('a/missing', 'EngineNotFound'),
      stack('a/ready', 'Ready', '', { sinceMs: 0 }),
      stack('a/off', 'Suspended', '', { sinceMs: 0 }),
    ]),
    [
      ['Failed', 'missing'],
      ['AwaitingApproval', 'waits', 'waits-too'],
      ['Stuck', 'stuck'],
      ['Drifted', 'drifted'],
    ],
  )
})

test('a group has the time and the message of the Stack that has had it longest, and names ten', () => {
  const stacks = Array.from({ length: 12 }, (_, index) => stack(`a/s${index}`, 'Failed', `${index} errors`, { sinceMs: nowMs - index }))
  const [group] = of(stacks).attention
  deepEqual([group?.count, group?.sinceMs, group?.message, group?.stacks.length], [12, nowMs - 11, '11 errors', 10])
})

test('the filter of a group shows its Stacks and no others, in the table and for an action on many', () => {
  const longAgo = { sinceMs: nowMs - hourMs - 1 }
  const stacks = [
    stack('a/denied', 'Failed', 'AccessDenied in bucket "one"', { reason: 'EngineFailed' }),
    stack('a/denied-too', 'Failing', 'AccessDenied in bucket "two"', { reason: 'EngineFailed' }),
    stack('a/syntax', 'Failed', 'a number is required', { reason: 'EngineFailed' }),
    stack('a/retries', 'Failing', 'the engine timed out', { reason: 'EngineFailed' }),
    stack('a/stuck', 'Working', '', { reason: 'Running', ...longAgo }),
    stack('a/works', 'Working', '', { reason: 'Running' }),
    stack('a/deleting', 'Deleting', '', { reason: 'Running', ...longAgo }),
    stack('a/ready', 'Ready', '', longAgo),
  ]
  const stacksTable = new RowTable<StackRow>()
  for (const row of stacks) stacksTable.set(row)
  const tables = { stacks: stacksTable } as unknown as RowTables
  const shown = (filter: string) => tableView('stacks', stacks, { filter }, nowMs).rows.map(({ key }) => key)
  const { attention, needAttention } = of(stacks)
  equal(attention.length, 4)
  for (const { filter, count, stacks: named } of attention) {
    const keys = named.map(({ namespace, name }) => `${namespace}/${name}`).sort()
    deepEqual([shown(filter), count], [keys, keys.length])
    deepEqual(
      matchingStacks({ tables }, { filter }, { all: true }, nowMs)
        .map(({ key }) => key)
        .sort(),
      keys,
    )
  }
  deepEqual([needAttention.stacks, needAttention.groups], [shown('-attention:none').length, 4])
  deepEqual(shown('attention:stuck-*'), ['a/deleting', 'a/stuck'])
})

test('Stacks by state, the queue and the workers are counted, and the latest Runs are first', () => {
  const { states, queue, workers, recent } = of([stack('a/one', 'Ready'), stack('a/two', 'Ready'), stack('a/three', 'Failed')], {
    runs: [
      { key: 'a/ended', phase: 'Succeeded', createdMs: 1, startedMs: 2, finishedMs: 9 },
      { key: 'a/waits', phase: 'Queued', createdMs: 5 },
      { key: 'a/waits-longest', phase: 'Queued', createdMs: 4 },
      { key: 'a/active', phase: 'Applying', createdMs: 1, startedMs: 8, worker: 'w' },
    ],
    workers: [{ name: 'w', phase: 'Busy' }, { phase: 'Idle' }, { phase: 'Draining' }],
  })
  deepEqual(
    { states, queue, workers },
    { states: { Ready: 2, Failed: 1 }, queue: { length: 2, oldestMs: 4 }, workers: { total: 3, busy: 1, draining: 1 } },
  )
  deepEqual(
    recent.map(({ key }) => key),
    ['a/ended', 'a/active', 'a/waits', 'a/waits-longest'],
  )
})

test('a worker is busy while an active Run names it, also before it has reported that, and not after that Run', () => {
  const workers = ['one', 'two', 'three'].map(name => ({ name, phase: name === 'three' ? ('Busy' as const) : ('Idle' as const) }))
  const runs: Partial<RunRow>[] = [
    { key: 'a/applies', phase: 'Applying', worker: 'one' },
    { key: 'a/plans', phase: 'Planning', worker: 'one' },
    { key: 'a/assigned', phase: 'Queued', worker: 'two' },
    { key: 'a/ended', phase: 'Succeeded', worker: 'three' },
  ]
  deepEqual(of([], { runs, workers }).workers, { total: 3, busy: 2, draining: 0 })
})

test('a worker is also busy with a Run that the user may not see', () => {
  const allRuns = [{ key: 'b/hidden', phase: 'Applying', worker: 'one' }] as RunRow[]
  const { workers, recent } = overviewOf({ stacks: [], runs: [], allRuns, workers: [{ name: 'one' }] as WorkerRow[], nowMs })
  deepEqual([workers?.busy, recent], [1, []])
})
