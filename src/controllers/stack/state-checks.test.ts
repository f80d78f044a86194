import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack } from '../../api/index.ts'
import type { StackDecision, StackInput, StateCheck } from './decision.ts'
import { lockRecheckMs, StateChecks, stateRecheckMs } from './state-checks.ts'

const missing: StateCheck = { error: { reason: 'StateMissing', message: 'no state' } }

/** Decides about one Stack whose stores answer `answers` one after another; an Error is thrown. `saw` has what each decision saw of the state. */
function harness(answers: (StateCheck | Error)[], status: Stack['status'] = { stateVersion: 3 }, annotations = {}) {
  const saw: (StateCheck | undefined)[] = []
  const expected: number[] = []
  const checks = new StateChecks(async (_, version) => {
    expected.push(version)
    const answer = answers.shift()
    if (answer === undefined || answer instanceof Error) throw answer ?? new Error('checked too often')
    return answer
  })
  const decide = (decision: Partial<StackDecision> = {}, spec: Partial<Stack['spec']> = {}) =>
    checks.decide({ stack: { metadata: { uid: 'uid', annotations }, spec, status } } as StackInput, ({ state }) => {
      saw.push(state)
      return { status: status ?? {}, deleteRuns: [], events: [], ...(state?.error || state?.lock ? {} : decision) }
    })
  return { decide, saw, expected }
}
const createRunOf = (type: string) => ({ name: 'app-1', spec: { type } }) as StackDecision['createRun'] & object
const createRun = createRunOf('Plan')
const locked: StateCheck = { lock: { holder: 'ada', sinceMs: 1 } }

test('a Stack is checked once by each process, and before each Run', async () => {
  const { decide, saw, expected } = harness([{}, {}, missing])
  await decide()
  await decide()
  deepEqual(expected, [3])
  equal((await decide({ createRun })).createRun, createRun)
  equal((await decide({ createRun })).createRun, undefined)
  deepEqual(saw, [undefined, {}, {}, {}, {}, {}, missing])
})

test('a Stack without its state is checked again after a while', async () => {
  const { decide, saw } = harness([missing, missing, {}])
  equal((await decide()).requeueAfterMs, stateRecheckMs)
  equal((await decide({ requeueAfterMs: 1_000_000 })).requeueAfterMs, stateRecheckMs)
  equal((await decide({ requeueAfterMs: 1_000_000 })).requeueAfterMs, 1_000_000)
  deepEqual(saw.at(-1), {})
})

test('a Stack that may have no state is not checked', async () => {
  const { decide, expected } = harness([], {})
  await decide({ createRun })
  deepEqual(expected, [])
})

test('a Stack whose state is not stored here any more has no error of it', async () => {
  const { decide, saw, expected } = harness([missing, missing])
  await decide()
  const external = await decide({ createRun }, { state: 'External' })
  deepEqual([external.createRun, external.requeueAfterMs, saw.at(-1)], [createRun, undefined, undefined])
  await decide()
  deepEqual(
    [expected, saw.slice(-2)],
    [
      [3, 3],
      [undefined, missing],
    ],
  )
})

test('a Stack with an imported state is checked before its first Run, but not while the import is pending', async () => {
  const imported = harness([missing], {}, { 'oarlock.dev/imported-state': 'lineage' })
  equal((await imported.decide({ createRun })).createRun, undefined)
  deepEqual([imported.expected, imported.saw], [[1], [undefined, missing]])
  const pending = harness([missing], {}, { 'oarlock.dev/imported-state': 'pending:lineage' })
  const decision = await pending.decide({ createRun })
  deepEqual([decision.createRun, decision.completeImport, pending.expected], [createRun, undefined, [1]])
})

test('an import that was killed after it stored the state is completed, and its state is required', async () => {
  const { decide, expected } = harness([{}, {}, {}, missing], {}, { 'oarlock.dev/imported-state': 'pending:lineage' })
  equal((await decide()).completeImport, 'lineage')
  const lost = await decide({ createRun })
  deepEqual([lost.createRun, expected], [undefined, [1, 1, 1, 1]])
})

for (const [state, answer] of [
  ['holds the lock, as an import does while it writes', locked],
  ['cannot be reached', new Error('unavailable')],
] as const)
  test(`a pending import is not completed while the store ${state}`, async () => {
    const { decide } = harness([answer], {}, { 'oarlock.dev/imported-state': 'pending:lineage' })
    equal((await decide()).completeImport, undefined)
  })

test('a journal that is not understood holds up a Stack that may have no state, until it is read or the state is stored elsewhere', async () => {
  const unreadable: StateCheck = { error: { reason: 'JournalUnreadable', message: 'unknown entry kind 42' } }
  const { decide, saw } = harness([unreadable, unreadable, {}], {})
  const apply = { createRun: createRunOf('Apply') }
  const stalled = await decide(apply)
  deepEqual([stalled.createRun, stalled.requeueAfterMs, saw], [undefined, stateRecheckMs, [undefined, unreadable]])
  equal((await decide(apply)).createRun, undefined)
  equal((await decide(apply)).createRun, apply.createRun)
  const external = harness([unreadable], {})
  await external.decide(apply)
  equal((await external.decide({ createRun }, { state: 'External' })).createRun, createRun)
})

test('if the stores do not answer, the Run is created: they check it when it starts', async () => {
  const { decide, saw } = harness([new Error('unavailable'), new Error('unavailable')])
  equal((await decide({ createRun })).createRun, createRun)
  await decide()
  deepEqual(saw, [undefined, undefined])
})

test('a lock is read before each Run that needs it, also before the first one, and again after a while', async () => {
  const { decide, saw } = harness([locked, locked, {}], {})
  const apply = { createRun: createRunOf('Apply') }
  const waiting = await decide(apply)
  deepEqual([waiting.createRun, waiting.requeueAfterMs, saw], [undefined, lockRecheckMs, [undefined, locked]])
  equal((await decide(apply)).requeueAfterMs, lockRecheckMs)
  equal((await decide(apply)).createRun, apply.createRun)
})

test('a lock that no Run waits for causes no further check', async () => {
  const { decide, expected } = harness([locked, {}])
  equal((await decide()).requeueAfterMs, undefined)
  equal((await decide({ createRun: createRunOf('Apply') })).createRun?.name, 'app-1')
  deepEqual(expected, [3, 3])
})

test('with a rate, idle Stacks are checked at their interval and at most so often, and Runs do not wait', async () => {
  let nowMs = 0
  const checked: string[] = []
  const check = async (stack: Stack) => {
    checked.push(stack.metadata.uid)
    return {}
  }
  const checks = new StateChecks(check, { rate: { intervalMs: 60_000, perSecond: 2 }, nowMs: () => nowMs })
  const decide = (uid: string, decision: Partial<StackDecision> = {}) => {
    const status = { stateVersion: 3 }
    const input = { stack: { metadata: { uid }, spec: {}, status }, jitter: 0.5 } as unknown as StackInput
    return checks.decide(input, () => ({ status, deleteRuns: [], events: [], ...decision }))
  }
  equal((await decide('a')).requeueAfterMs, 60_000)
  await decide('b')
  equal((await decide('c')).requeueAfterMs, 20_000)
  await decide('d', { createRun })
  deepEqual(checked, ['a', 'b', 'd'])
  nowMs = 1_000
  equal((await decide('a')).requeueAfterMs, 59_000)
  await decide('c')
  nowMs = 60_000
  await decide('a')
  deepEqual(checked, ['a', 'b', 'd', 'c', 'a'])
})

test('with a rate, an idle Stack whose check failed is checked again later', async () => {
  const rate = { intervalMs: 60_000, perSecond: 2 }
  const checks = new StateChecks(() => Promise.reject(new Error('unavailable')), { rate })
  const status = { stateVersion: 3 }
  const input = { stack: { metadata: { uid: 'a' }, spec: {}, status }, jitter: 0.5 } as unknown as StackInput
  equal((await checks.decide(input, () => ({ status, deleteRuns: [], events: [] }))).requeueAfterMs, 20_000)
})
