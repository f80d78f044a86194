import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../../api/index.ts'
import { findOomKill, type OomEvidence } from './find-oom-kill.ts'
import type { StopCause } from './stop-cause.ts'

const run = { spec: { stack: { resources: { memory: '48Mi' } } } } as unknown as Run
const none: OomEvidence = {
  cgroupOomKills: 0,
  peakMemoryBytes: 100,
  limitBytes: 80,
  hasKilledProgram: false,
  machineOomKillsBefore: 3,
  machineOomKills: 3,
}

for (const [name, evidence, want] of [
  ['there is no cause without a kill', {}, undefined],
  ['a kill in the cgroup names peak and limit', { cgroupOomKills: 1 }, { kind: 'OutOfMemory', used: 100, limit: 80, raise: undefined }],
  [
    'a kill in a cgroup without a limit reports the peak as the limit',
    { cgroupOomKills: 1, limitBytes: undefined },
    { kind: 'OutOfMemory', used: 100, limit: 100, raise: undefined },
  ],
  ['there is no cause for a SIGKILL without an OOM kill of the machine', { hasKilledProgram: true }, undefined],
  ['there is no cause if an OOM kill of the machine hit another process', { machineOomKills: 4 }, undefined],
  [
    'a SIGKILL after an OOM kill of the machine means that the machine ran out of memory',
    { hasKilledProgram: true, machineOomKills: 4 },
    { kind: 'MachineOutOfMemory', used: 100 },
  ],
] as [string, Partial<OomEvidence>, StopCause | undefined][]) {
  test(name, () => deepEqual(findOomKill(run, { ...none, ...evidence }), want))
}
