import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { decideHealth, type WorkerHealthInputs } from './decide-health.ts'
import { defaultLeaseTimings } from './lease/lease-timings.ts'

const well: WorkerHealthInputs = {
  isRegistered: true,
  sinceRenewalMs: 900,
  timings: defaultLeaseTimings,
  drainReason: undefined,
  supervisor: 'answers',
}
const late = (age: string) => `the Lease was renewed ${age} ago; it lasts 10.0 s`
const lost = 'no supervisor can be kept beside the worker, so no engine may run: it ends when those that ran have'

for (const [what, facts, want] of [
  ['all is well', {}, { live: [], ready: [], started: [] }],
  [
    'before it has registered',
    { isRegistered: false, sinceRenewalMs: 1e9, supervisor: 'away' },
    { live: [], ready: ['the worker has not registered yet'], started: ['the worker has not registered yet'] },
  ],
  ['the Lease is late', { sinceRenewalMs: 6_000 }, { live: [], ready: [late('6.0 s')], started: [] }],
  ['it should have ended', { sinceRenewalMs: 20_000 }, { live: [late('20.0 s')], ready: [late('20.0 s')], started: [] }],
  ['it drains', { drainReason: 'Idle' }, { live: [], ready: ['the worker drains (Idle) and takes no Run'], started: [] }],
  [
    'no supervisor answers',
    { supervisor: 'away' },
    { live: [], ready: ['the supervisor beside the worker does not answer at the moment'], started: [] },
  ],
  ['no supervisor can be kept', { supervisor: 'lost' }, { live: [lost], ready: [lost], started: [] }],
] as [string, Partial<WorkerHealthInputs>, ReturnType<typeof decideHealth>][]) {
  test(`health: ${what}`, () => deepEqual(decideHealth({ ...well, ...facts }), want))
}
