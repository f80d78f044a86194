import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import type { Worker } from '../../api/index.ts'
import { type ClaimsInput, decideClaims, decideExitReport } from './decide-claims.ts'

type Options = { pool?: string; start?: boolean; drain?: boolean; created?: string; deleted?: boolean; status?: Worker['status'] }

const request = (name: string, { pool = 'p', start = true, drain, created = '10:00:00', deleted, status }: Options = {}): Worker => ({
  apiVersion: 'oarlock.dev/v1alpha1',
  kind: 'Worker',
  metadata: {
    ...{ name, uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: `2026-06-01T${created}Z` },
    ...(deleted && { deletionTimestamp: '2026-06-01T11:00:00Z' }),
  },
  spec: { pool, slots: 1, lifecycle: 'OneShot', start, ...(drain && { drain }) },
  status: status ?? { phase: 'Pending' },
})
const decide = (workers: Worker[], input: Partial<ClaimsInput> = {}) => {
  const { claim, fail } = decideClaims({
    ...{ workers, pools: new Set(['p']), agent: 'a', active: new Set<string>(), maxWorkers: 10, isDraining: false },
    ...input,
  })
  return { claim: claim.map(({ metadata }) => metadata.name), fail: fail.map(({ metadata }) => metadata.name) }
}

for (const [title, workers, input, claim, fail] of [
  ['a pending request of a served pool', [request('w')], {}, ['w'], []],
  ['no request of another pool', [request('w', { pool: 'q' })], {}, [], []],
  ['no worker that registers itself', [request('w', { start: false })], {}, [], []],
  ['no registered worker', [request('w', { status: { phase: 'Ready' } })], {}, [], []],
  ['no request that another host has claimed', [request('w', { status: { phase: 'Starting', agent: 'b' } })], {}, [], []],
  ['no request that is being deleted or drained', [request('v', { deleted: true }), request('w', { drain: true })], {}, [], []],
  ['no request that is already being claimed', [request('w')], { active: new Set(['w']) }, [], []],
  ['no more than the host has room for', [request('w')], { active: new Set(['x', 'y']), maxWorkers: 2 }, [], []],
  ['nothing while it drains', [request('w')], { isDraining: true }, [], []],
  ['nothing above a maximum that was lowered', [request('w')], { active: new Set(['x', 'y']), maxWorkers: 1 }, [], []],
  ['its own claim without a process is failed', [request('w', { status: { phase: 'Starting', agent: 'a' } })], {}, [], ['w']],
  [
    'its own claim with a process is kept',
    [request('w', { status: { phase: 'Starting', agent: 'a' } })],
    { active: new Set(['w']) },
    [],
    [],
  ],
  [
    'a failed claim is reported even without room',
    [request('w', { status: { phase: 'Starting', agent: 'a' } })],
    { active: new Set(['x']), maxWorkers: 1, isDraining: true },
    [],
    ['w'],
  ],
] as [string, Worker[], Partial<ClaimsInput>, string[], string[]][]) {
  test(`an agent claims: ${title}`, () => deepEqual(decide(workers, input), { claim, fail }))
}

test('the oldest requests are claimed first', () => {
  const workers = [request('c', { created: '10:00:02' }), request('a', { created: '10:00:00' }), request('b', { created: '10:00:01' })]
  deepEqual(decide(workers, { maxWorkers: 2 }).claim, ['a', 'b'])
})

test('two agents with room prefer different requests of the same age', () => {
  const workers = Array.from({ length: 40 }, (_, index) => request(`w${index}`))
  const [a, b] = ['a', 'b'].map(agent => new Set(decide(workers, { agent, maxWorkers: 20 }).claim))
  equal(a!.size, 20)
  const both = a!.intersection(b!).size
  // About half of 20 by chance; all 20 if both used the same order.
  ok(both >= 4 && both <= 16, `${both} of 20 are preferred by both`)
})

const exit = (worker: Worker | undefined, exitCode: number | undefined) =>
  decideExitReport(worker, { agent: 'a', exitCode, message: 'm', reason: 'CrashedOnStartup' })
const own = (phase: NonNullable<Worker['status']>['phase']) => request('w', { status: { phase, agent: 'a' } })

for (const [title, worker, exitCode, reported] of [
  ['before it registered', own('Starting'), 1, true],
  ['before it registered, with code 0', own('Starting'), 0, true],
  ['before it registered, by a signal', own('Starting'), undefined, true],
  ['by a signal while it executes a Run', own('Busy'), undefined, true],
  ['with code 0 while its Worker is still there', own('Busy'), 0, false],
  ['after its Worker was deleted', undefined, 1, false],
  ['whose Worker another host has claimed', request('w', { status: { phase: 'Starting', agent: 'b' } }), 1, false],
  ['that was reported already', own('Failed'), 1, false],
] as [string, Worker | undefined, number | undefined, boolean][]) {
  test(`the end of a process ${title} is ${reported ? '' : 'not '}reported`, () => {
    const status = { phase: 'Failed', message: 'm', reason: 'CrashedOnStartup', ...(exitCode !== undefined && { exitCode }) }
    deepEqual(exit(worker, exitCode), reported ? status : undefined)
  })
}
