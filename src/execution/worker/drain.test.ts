import { equal } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Drain } from './drain.ts'

function createDrain(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let interrupts = 0
  return { drain: new Drain(1_000, () => interrupts++), pass: (ms: number) => t.mock.timers.tick(ms), interrupts: () => interrupts }
}

test('invariant 8: Runs are interrupted when the grace period has expired, not before', t => {
  const { drain, pass, interrupts } = createDrain(t)
  equal(drain.start('Signal'), true)
  pass(999)
  equal(interrupts(), 0)
  pass(1)
  equal(interrupts(), 1)
})

test('the first reason is kept, and a second drain does not restart the grace period', t => {
  const { drain, pass, interrupts } = createDrain(t)
  drain.start('Idle')
  pass(600)
  equal(drain.start('Signal'), false)
  equal(drain.reason, 'Idle')
  pass(400)
  equal(interrupts(), 1)
})

test('a requested drain can be canceled during its grace period, and requested again', t => {
  const { drain, pass, interrupts } = createDrain(t)
  drain.start('DrainRequested', { isCancelable: true })
  equal(drain.cancel(), true)
  equal(drain.reason, undefined)
  pass(5_000)
  equal(interrupts(), 0)
  equal(drain.start('DrainRequested', { isCancelable: true }), true)
})

for (const [name, prepare] of [
  ['no drain is in progress', () => {}],
  ['a signal caused it', drain => drain.start('Signal')],
  [
    'a signal followed the request',
    drain => {
      drain.start('DrainRequested', { isCancelable: true })
      drain.start('Signal')
    },
  ],
  [
    'its grace period has expired',
    (drain, pass) => {
      drain.start('DrainRequested', { isCancelable: true })
      pass(1_000)
    },
  ],
] as [string, (drain: Drain, pass: (ms: number) => void) => void][]) {
  test(`a drain is not canceled if ${name}`, t => {
    const { drain, pass } = createDrain(t)
    prepare(drain, pass)
    equal(drain.cancel(), false)
  })
}
