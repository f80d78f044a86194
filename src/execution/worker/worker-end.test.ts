import { deepEqual, match } from 'node:assert/strict'
import { test } from 'node:test'
import { describeEnd, isFenced, type WorkerFence } from './worker-end.ts'

const none: WorkerFence = {
  isLeaseLost: false,
  isSupervisorLost: false,
  isCredentialRejected: false,
  supervisorError: undefined,
  crash: undefined,
}
const end = (input: Partial<Parameters<typeof describeEnd>[0]>) =>
  describeEnd({ fence: undefined, drainReason: undefined, slots: 1, runs: 1, ...input })

for (const [name, input, reason, message] of [
  ['a one-shot worker after its Run', {}, 'OneShotCompleted', /^its Run has ended, and with lifecycle OneShot it executes one Run; /],
  ['a one-shot worker with slots', { slots: 3, runs: 2 }, 'OneShotCompleted', /^its 2 Runs have ended, .* at most 3 Runs, one per slot; /],
  ['a drained worker', { drainReason: 'DrainRequested' }, 'DrainRequested', /^it was drained: spec\.drain/],
  ['an idle worker', { drainReason: 'Idle', runs: 0 }, 'Idle', /idle timeout/],
  ['a worker that is fenced while it drains', { drainReason: 'Signal', fence: none }, 'LeaseExpired', /could not be renewed in time/],
  ['a revoked worker', { fence: { ...none, isCredentialRejected: true } }, 'CredentialRejected', /revoked or has expired; join again/],
  [
    'a revoked worker whose Lease was deleted since',
    { fence: { ...none, isCredentialRejected: true, isLeaseLost: true } },
    'CredentialRejected',
    /rejects its credential/,
  ],
  ['a worker that was declared lost', { fence: { ...none, isLeaseLost: true } }, 'LeaseDeleted', /declared lost/],
  ['a worker without a supervisor', { fence: { ...none, isSupervisorLost: true } }, 'SupervisorLost', /supervisor/],
  [
    'a worker whose supervisor does not respond',
    { fence: { ...none, supervisorError: new Error('no reply') } },
    'SupervisorUnavailable',
    /no reply/,
  ],
  ['a worker with a bug', { fence: { ...none, isSupervisorLost: true, crash: new Error() } }, 'UnexpectedError', /unexpected/],
] as [string, Parameters<typeof end>[0], string, RegExp][]) {
  test(`${name} ends with reason ${reason}`, () => {
    const found = end(input)
    deepEqual(found.reason, reason)
    match(found.message, message)
  })
}

test('a rejected renewal fences a worker only when its Lease expires: the next one may succeed', () => {
  deepEqual(isFenced({ ...none, isCredentialRejected: true }), false)
  deepEqual(isFenced({ ...none, isLeaseLost: true }), true)
})
