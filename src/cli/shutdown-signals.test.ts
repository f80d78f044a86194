import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { onShutdownSignal } from './shutdown-signals.ts'

test('counts signals, and ignores one that npm forwards within 500 ms', t => {
  let nowMs = 10_000
  t.mock.method(performance, 'now', () => nowMs)
  const counts: number[] = []
  const before = process.listenerCount('SIGTERM')
  const remove = onShutdownSignal(count => counts.push(count))
  for (const [signal, afterMs] of [
    ['SIGINT', 0],
    ['SIGINT', 20],
    ['SIGTERM', 1_000],
    ['SIGHUP', 501],
  ] as const) {
    nowMs += afterMs
    process.emit(signal, signal)
  }
  deepEqual(counts, [1, 2, 3])
  remove()
  equal(process.listenerCount('SIGTERM'), before)
})
