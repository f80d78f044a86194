import { deepEqual, equal } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { escalationMs, RunStopper } from './run-stopper.ts'

function createStopper(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const signals: string[] = []
  let interrupts = 0
  const stopper = new RunStopper({
    onInterrupt: () => interrupts++,
    signalGroup: (group, signal) => void signals.push(`${signal} ${group}`),
  })
  stopper.addGroup(7)
  return { stopper, signals, interrupts: () => interrupts }
}

test('a canceled Run is interrupted once and may still write', t => {
  const { stopper, signals, interrupts } = createStopper(t)
  stopper.stop({ kind: 'Canceled' })
  stopper.stop({ kind: 'WorkerDrained', because: 'GraceExpired' })
  t.mock.timers.tick(10 * escalationMs)
  equal(interrupts(), 1)
  deepEqual(stopper.cause, { kind: 'Canceled' })
  equal(stopper.signal.aborted, true)
  equal(stopper.writeSignal.aborted, false)
  deepEqual(signals, [], 'the runner sends SIGINT and escalates on its own')
})

test('invariant 1: a Run that belongs to another worker stops writing immediately and is killed within two escalations', t => {
  const { stopper, signals } = createStopper(t)
  stopper.stop({ kind: 'OwnershipLost', detail: 'it was deleted' })
  equal(stopper.writeSignal.aborted, true)
  t.mock.timers.tick(escalationMs)
  deepEqual(signals, ['SIGTERM 7'])
  stopper.removeGroup(7)
  stopper.addGroup(8)
  t.mock.timers.tick(escalationMs)
  deepEqual(signals, ['SIGTERM 7', 'SIGKILL 8'], 'only groups that still run are signaled')
})

test('no SIGINT is sent or reported where the supervisor interrupts the engine', () => {
  for (const isSupervisors of [false, true]) {
    const signals: string[] = []
    const stopper = new RunStopper({
      onInterrupt: () => signals.push('reported'),
      mayInterrupt: () => !isSupervisors,
      signalGroup: (group, signal) => void signals.push(`${signal} ${group}`),
    })
    stopper.fence('SIGINT')
    stopper.interruptGroup(7)
    deepEqual(signals, isSupervisors ? [] : ['reported', 'SIGINT 7'])
    equal(stopper.signal.aborted, true)
  }
})

test('a Run that loses its owner twice escalates once', t => {
  const { stopper, signals } = createStopper(t)
  stopper.stop({ kind: 'OwnershipLost', detail: 'it was declared Lost' })
  stopper.stop({ kind: 'OwnershipLost', detail: 'it was deleted' })
  t.mock.timers.tick(2 * escalationMs)
  deepEqual(signals, ['SIGTERM 7', 'SIGKILL 7'])
})

test('invariant 2: the fence interrupts, terminates and kills; only SIGKILL forbids writes', t => {
  const { stopper, signals, interrupts } = createStopper(t)
  stopper.fence('SIGINT')
  deepEqual([interrupts(), signals, stopper.writeSignal.aborted], [1, [], false], 'SIGINT comes from the runner, never twice')
  stopper.fence('SIGTERM')
  deepEqual([interrupts(), signals, stopper.writeSignal.aborted], [1, ['SIGTERM 7'], false])
  stopper.fence('SIGKILL')
  deepEqual([interrupts(), signals, stopper.writeSignal.aborted], [1, ['SIGTERM 7', 'SIGKILL 7'], true])
  deepEqual(stopper.cause, { kind: 'LeaseLost' })
})

test('the cause of an error is kept only where no other cause is known', t => {
  const { stopper } = createStopper(t)
  stopper.recordCause({ kind: 'LeaseLost' })
  stopper.recordCause({ kind: 'Canceled' })
  deepEqual(stopper.cause, { kind: 'LeaseLost' })
  equal(stopper.signal.aborted, false)
})
