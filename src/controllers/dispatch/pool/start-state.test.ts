import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  nextTimeoutMs,
  noStarts,
  type StartFailure,
  troubleOf,
  withFailed,
  withForgotten,
  withProven,
  withRegistered,
  withStarted,
  withTimeouts,
  withTrouble,
} from './start-state.ts'

const crash: StartFailure = { reason: 'CrashedAtOnce', message: 'exit 1' }
const pull: StartFailure = { reason: 'ImagePullFailed', message: 'Back-off pulling image "oarlock:nope"' }

test('a start that succeeds leaves nothing behind once its worker had a Run', () => {
  const state = withStarted(noStarts, 'w', 100)
  assert.equal(nextTimeoutMs(state), 30_100)
  assert.deepEqual(withRegistered(state, 'w', 200), { ...noStarts, unproven: [{ name: 'w', sinceMs: 200 }] })
  assert.deepEqual(withProven(withRegistered(state, 'w', 200), 'w'), noStarts)
})

test('the backoff doubles from one second to one minute', () => {
  let state = noStarts
  const waits: number[] = []
  for (let i = 0; i < 8; i++) {
    const nowMs = state.notBeforeMs
    state = withFailed(withStarted(state, `w${i}`, nowMs), `w${i}`, crash, nowMs)
    waits.push(state.notBeforeMs - nowMs)
  }
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
})

test('workers that were started together and fail together are one try', () => {
  const started = withStarted(withStarted(noStarts, 'a', 0), 'b', 0)
  const state = withFailed(withFailed(started, 'a', crash, 10), 'b', crash, 20)
  assert.deepEqual([state.failures, state.notBeforeMs], [1, 1_010])
})

test('registering alone does not end the backoff, a Run does: workers that register and crash would be started without end', () => {
  const failed = withFailed(withStarted(noStarts, 'a', 0), 'a', crash, 0)
  const registered = withRegistered(withStarted(failed, 'b', 1_000), 'b', 1_200)
  assert.equal(registered.failures, 1)
  assert.equal(withFailed(registered, 'b', crash, 1_500).failures, 2)
  assert.deepEqual(withProven(registered, 'b'), noStarts)
})

test('a worker that does not register in time counts as failed, once', () => {
  const state = withStarted(noStarts, 'w', 0)
  assert.equal(withTimeouts(state, 29_999).state, state)
  const { state: late, givenUp } = withTimeouts(state, 30_000)
  assert.deepEqual(givenUp, ['w'])
  assert.equal(late.failures, 1)
  assert.deepEqual(late.lastTrouble, { reason: 'NotRegistered', message: 'worker w did not register within 30 s' })
  assert.equal(withTimeouts(late, 99_000).state, late)
  assert.equal(withFailed(late, 'w', crash, 30_001), late)
  assert.equal(withTimeouts(state, 599_999, 600_000).state, state)
})

test('trouble is told while it lasts, and is the cause when time is up', () => {
  const state = withTrouble(withStarted(noStarts, 'w', 0), 'w', pull)
  assert.deepEqual(troubleOf(state), pull)
  assert.equal(withTrouble(state, 'w', { ...pull }), state)
  assert.equal(troubleOf(withTrouble(state, 'w', undefined)), undefined)
  const late = withTimeouts(state, 30_000).state
  assert.deepEqual(troubleOf(late), { reason: 'ImagePullFailed', message: `worker w did not register within 30 s: ${pull.message}` })
})

test('the exit of a worker that had a Run is not a failed start', () => {
  const state = withProven(withRegistered(withStarted(noStarts, 'w', 0), 'w', 1), 'w')
  assert.equal(withFailed(state, 'w', crash, 5), state)
})

test('one that was taken away on purpose is forgotten without a word', () => {
  assert.deepEqual(withForgotten(withStarted(noStarts, 'w', 0), 'w'), noStarts)
  assert.equal(withForgotten(noStarts, 'w'), noStarts)
})

test('one that lives for a minute has proven itself without a Run', () => {
  const failed = withFailed(withStarted(noStarts, 'a', 0), 'a', crash, 0)
  const registered = withRegistered(withStarted(failed, 'b', 1_000), 'b', 2_000)
  assert.equal(nextTimeoutMs(registered), 62_000)
  assert.equal(withTimeouts(registered, 61_999).state, registered)
  assert.deepEqual(withTimeouts(registered, 62_000).state, noStarts)
})
