import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  currentFailure,
  domainFailure,
  failingDomains,
  initialStartState,
  nextTimeoutMs,
  type StartFailure,
  withFailed,
  withProven,
  withRegistered,
  withRemoved,
  withStarted,
  withStartFailing,
  withTimeouts,
} from './start-state.ts'

const crash: StartFailure = { reason: 'CrashedOnStartup', message: 'exit 1' }
const pull: StartFailure = { reason: 'ImagePullFailed', message: 'Back-off pulling image "oarlock:nope"' }

test('a successful start leaves no state once its worker is proven', () => {
  const state = withStarted(initialStartState, 'w', 100)
  assert.equal(nextTimeoutMs(state), 30_100)
  assert.deepEqual(withRegistered(state, 'w', 200), { ...initialStartState, unproven: [{ name: 'w', sinceMs: 200 }] })
  assert.deepEqual(withProven(withRegistered(state, 'w', 200), 'w'), initialStartState)
})

test('the backoff doubles from one second to one minute', () => {
  let state = initialStartState
  const waits: number[] = []
  for (let i = 0; i < 8; i++) {
    const nowMs = state.notBeforeMs
    state = withFailed(withStarted(state, `w${i}`, nowMs), `w${i}`, crash, nowMs)
    waits.push(state.notBeforeMs - nowMs)
  }
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
})

test('workers that were started together and fail together are one attempt', () => {
  const started = withStarted(withStarted(initialStartState, 'a', 0), 'b', 0)
  const state = withFailed(withFailed(started, 'a', crash, 10), 'b', crash, 20)
  assert.deepEqual([state.failures, state.notBeforeMs], [1, 1_010])
})

test('registration alone does not end the backoff, a Run does: otherwise workers that register and crash would be started endlessly', () => {
  const failed = withFailed(withStarted(initialStartState, 'a', 0), 'a', crash, 0)
  const registered = withRegistered(withStarted(failed, 'b', 1_000), 'b', 1_200)
  assert.equal(registered.failures, 1)
  assert.equal(withFailed(registered, 'b', crash, 1_500).failures, 2)
  assert.deepEqual(withProven(registered, 'b'), initialStartState)
})

test('a worker that does not register in time counts as one failure', () => {
  const state = withStarted(initialStartState, 'w', 0)
  assert.equal(withTimeouts(state, 29_999).state, state)
  const { state: late, timedOut } = withTimeouts(state, 30_000)
  assert.deepEqual(timedOut, ['w'])
  assert.equal(late.failures, 1)
  assert.deepEqual(late.lastFailure, { reason: 'RegistrationFailed', message: 'worker w did not register within 30 s' })
  assert.equal(withTimeouts(late, 99_000).state, late)
  assert.equal(withFailed(late, 'w', crash, 30_001), late)
  assert.equal(withTimeouts(state, 599_999, 600_000).state, state)
})

test('a failure is reported while it lasts, and is the cause of the timeout', () => {
  const state = withStartFailing(withStarted(initialStartState, 'w', 0), 'w', pull)
  assert.deepEqual(currentFailure(state), pull)
  assert.equal(withStartFailing(state, 'w', { ...pull }), state)
  assert.equal(currentFailure(withStartFailing(state, 'w', undefined)), undefined)
  const late = withTimeouts(state, 30_000).state
  assert.deepEqual(currentFailure(late), { reason: 'ImagePullFailed', message: `worker w did not register within 30 s: ${pull.message}` })
})

test('the exit of a proven worker is not a failed start', () => {
  const state = withProven(withRegistered(withStarted(initialStartState, 'w', 0), 'w', 1), 'w')
  assert.equal(withFailed(state, 'w', crash, 5), state)
})

test('a worker that was removed on purpose is no failure', () => {
  assert.deepEqual(withRemoved(withStarted(initialStartState, 'w', 0), 'w'), initialStartState)
  assert.equal(withRemoved(initialStartState, 'w'), initialStartState)
})

test('a worker is proven without a Run after one minute', () => {
  const failed = withFailed(withStarted(initialStartState, 'a', 0), 'a', crash, 0)
  const registered = withRegistered(withStarted(failed, 'b', 1_000), 'b', 2_000)
  assert.equal(nextTimeoutMs(registered), 62_000)
  assert.equal(withTimeouts(registered, 61_999).state, registered)
  assert.deepEqual(withTimeouts(registered, 62_000).state, initialStartState)
})

test('a failed start of a Pod for one trust domain delays only that one, until one of its Pods has registered', () => {
  const start = (state: typeof initialStartState, name: string, nowMs: number) => withStarted(state, name, nowMs, 'shop/deploy')
  let state = withFailed(start(initialStartState, 'w1', 0), 'w1', crash, 0)
  assert.deepEqual([state.failures, state.notBeforeMs, currentFailure(state)], [0, 0, undefined])
  assert.deepEqual(domainFailure(state, 'shop/deploy'), { failures: 1, notBeforeMs: 1_000, lastFailure: crash })
  assert.equal(domainFailure(state, 'shop/other'), undefined)
  state = withFailed(start(state, 'w2', 1_000), 'w2', crash, 1_000)
  assert.equal(domainFailure(state, 'shop/deploy')?.notBeforeMs, 3_000)
  assert.equal(domainFailure(withRegistered(start(state, 'w3', 3_000), 'w3', 4_000), 'shop/deploy'), undefined)
})

test('the failures of a trust domain are forgotten when no Pod was started for it for the longest backoff', () => {
  const start = (state: typeof initialStartState, name: string, nowMs: number) => withStarted(state, name, nowMs, 'shop/deploy')
  const failed = withFailed(start(initialStartState, 'w1', 0), 'w1', crash, 0)
  assert.deepEqual([...failingDomains(failed)], [['shop/deploy', crash]])
  assert.equal(nextTimeoutMs(failed), 61_000)
  assert.equal(withTimeouts(failed, 60_999).state, failed)
  assert.deepEqual(failingDomains(withTimeouts(failed, 61_000).state).size, 0)
  const probing = start(failed, 'w2', 50_000)
  assert.equal(nextTimeoutMs(probing), 80_000)
  assert.equal(withTimeouts(probing, 79_999).state, probing)
})

test('a Pod for a trust domain that is failing to start is a failure of this domain, and not of the pool', () => {
  const state = withStartFailing(withStarted(initialStartState, 'w', 0, 'shop/'), 'w', pull)
  assert.equal(currentFailure(state), undefined)
  assert.deepEqual([...failingDomains(state)], [['shop/', pull]])
})
