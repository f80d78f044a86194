import { deepEqual } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startFenceTimer } from './fence-timer.ts'
import { defaultLeaseTimings } from './lease-timings.ts'

function start(t: TestContext, startMs = 0) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let sinceRenewalMs = startMs
  const steps: string[] = []
  const timer = startFenceTimer({
    times: defaultLeaseTimings,
    sinceRenewalMs: () => sinceRenewalMs,
    onStep: step => steps.push(`${step} at ${sinceRenewalMs}`),
  })
  t.after(() => timer.stop())
  return {
    timer,
    steps,
    pass(ms: number) {
      for (let passedMs = 0; passedMs < ms; passedMs += 100) {
        sinceRenewalMs += 100
        t.mock.timers.tick(100)
      }
    },
    renew() {
      sinceRenewalMs = 0
      timer.update()
    },
    suspend(ms: number) {
      sinceRenewalMs += ms
    },
  }
}

test('invariant 2: without a renewal each step comes at its own time, and only once', t => {
  const { steps, pass } = start(t)
  pass(20_000)
  deepEqual(steps, ['SIGINT at 6000', 'SIGTERM at 7500', 'SIGKILL at 9000'])
})

test('renewals postpone every step', t => {
  const { steps, pass, renew } = start(t)
  for (let round = 0; round < 10; round++) {
    pass(4_000)
    renew()
  }
  deepEqual(steps, [])
})

test('invariant 2: a machine that resumes after the Lease expired kills at the next check, without the earlier steps', t => {
  const { steps, pass, suspend } = start(t)
  pass(1_000)
  suspend(60_000)
  pass(500)
  deepEqual(
    steps.map(step => step.split(' ')[0]),
    ['SIGKILL'],
  )
})

test('a timer that starts after the deadline acts immediately', t => deepEqual(start(t, 9_500).steps, ['SIGKILL at 9500']))

test('a stopped timer takes no further step', t => {
  const { timer, steps, pass } = start(t)
  timer.stop()
  pass(20_000)
  deepEqual(steps, [])
})
