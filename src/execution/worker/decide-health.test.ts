import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideHealth, type WorkerHealthInputs } from './decide-health.ts'
import { defaultLeaseTimings } from './lease/lease-timings.ts'

const healthy: WorkerHealthInputs = {
  isRegistered: true,
  sinceRenewalMs: 900,
  timings: defaultLeaseTimings,
  drainReason: undefined,
  supervisor: 'connected',
}
const late = (age: string) => `last renewed the Lease ${age} ago, it expires after 10s`
const notRegistered = 'the worker is not registered yet'
const lost = 'failed to keep a supervisor process running; the worker exits when its engines have stopped'

for (const [name, inputs, want] of [
  ['a registered worker with a fresh Lease is healthy', {}, { live: [], ready: [], started: [] }],
  [
    'a worker that is not registered has not started',
    { isRegistered: false, sinceRenewalMs: 1e9, supervisor: 'disconnected' },
    { live: [], ready: [notRegistered], started: [notRegistered] },
  ],
  ['a worker with a late Lease is not ready', { sinceRenewalMs: 6_000 }, { live: [], ready: [late('6s')], started: [] }],
  [
    'a worker that should have exited on its own is not live',
    { sinceRenewalMs: 20_000 },
    { live: [late('20s')], ready: [late('20s')], started: [] },
  ],
  [
    'a draining worker is not ready',
    { drainReason: 'Idle' },
    { live: [], ready: ['the worker is draining (Idle) and starts no Run'], started: [] },
  ],
  [
    'a worker without a connection to its supervisor is not ready',
    { supervisor: 'disconnected' },
    { live: [], ready: ['not connected to a supervisor process, reconnecting'], started: [] },
  ],
  ['a worker that lost its supervisor for good is not live', { supervisor: 'lost' }, { live: [lost], ready: [lost], started: [] }],
] as [string, Partial<WorkerHealthInputs>, ReturnType<typeof decideHealth>][]) {
  test(name, () => deepEqual(decideHealth({ ...healthy, ...inputs }), want))
}
