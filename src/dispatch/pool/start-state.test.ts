import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextTimeoutMs, noStarts, withFailed, withRegistered, withStarted, withTimeouts } from './start-state.ts'

test('a start that succeeds leaves nothing behind', () => {
  const state = withStarted(noStarts, 'w', 100)
  assert.equal(nextTimeoutMs(state), 30_100)
  assert.deepEqual(withRegistered(state, 'w'), noStarts)
})

test('the backoff doubles from one second to one minute', () => {
  let state = noStarts
  const waits: number[] = []
  for (let i = 0; i < 8; i++) {
    state = withFailed(withStarted(state, `w${i}`, 0), `w${i}`, 'exit 1', 0)
    waits.push(state.notBeforeMs)
  }
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
})

test('one that registers ends the backoff', () => {
  const failed = withFailed(withStarted(noStarts, 'a', 0), 'a', 'exit 1', 0)
  assert.deepEqual(withRegistered(withStarted(failed, 'b', 1_000), 'b'), noStarts)
})

test('a worker that does not register within 30 s counts as failed, once', () => {
  const state = withStarted(noStarts, 'w', 0)
  assert.equal(withTimeouts(state, 29_999), state)
  const late = withTimeouts(state, 30_000)
  assert.equal(late.failures, 1)
  assert.equal(late.lastError, 'worker w did not register within 30 s')
  assert.equal(withTimeouts(late, 99_000), late)
  assert.equal(withFailed(late, 'w', 'exit 1', 30_001), late)
})

test('the exit of a worker that had registered is not a failed start', () => {
  const state = withRegistered(withStarted(noStarts, 'w', 0), 'w')
  assert.equal(withFailed(state, 'w', 'exit 0', 5), state)
})
