import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { type DeadlineInputs, decideDeadline } from './decide-deadline.ts'

const times = { interruptMs: 6_000, terminateMs: 7_500, killMs: 9_000 }
const fresh: DeadlineInputs = { nowMs: 100_000, renewedAtMs: 99_000, endsByMs: undefined, sent: 'none', times }

for (const [name, inputs, send, recheckInMs] of [
  ['sends nothing while the Lease is renewed', {}, 'none', 5_100],
  ['leaves the worker 100 ms to interrupt its engine first', { renewedAtMs: 94_000 }, 'none', 100],
  ['interrupts an engine whose worker did not', { renewedAtMs: 93_900 }, 'SIGINT', 1_500],
  ['does not interrupt an engine that its worker has interrupted', { renewedAtMs: 93_900, sent: 'SIGINT' }, 'none', 1_500],
  ['terminates an engine that ignores SIGINT', { renewedAtMs: 92_400, sent: 'SIGINT' }, 'SIGTERM', 1_400],
  ['invariant 2: kills without slack', { renewedAtMs: 91_000, sent: 'SIGTERM' }, 'SIGKILL', Number.POSITIVE_INFINITY],
  ['does nothing for a Run before its time ends', { endsByMs: 110_000 }, 'none', 5_100],
  ['interrupts a Run that exceeds its time, although its Lease is renewed', { endsByMs: 99_900 }, 'SIGINT', 1_500],
  ['kills a Run 3 s after it exceeded its time', { endsByMs: 97_000, sent: 'SIGTERM' }, 'SIGKILL', Number.POSITIVE_INFINITY],
] as [string, Partial<DeadlineInputs>, string, number][]) {
  test(name, () => deepEqual(decideDeadline({ ...fresh, ...inputs }), { send, recheckInMs }))
}
