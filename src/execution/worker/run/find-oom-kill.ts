import type { Run } from '../../../api/index.ts'
import { stopCauseOf } from './isolation.ts'
import type { StopCause } from './stop-cause.ts'

export type OomEvidence = {
  /** OOM kills in the Run's own cgroup. */
  readonly cgroupOomKills: number
  readonly peakMemoryBytes: number
  readonly limitBytes: number | undefined
  /** A program of the Run exited by SIGKILL. */
  readonly hasKilledProgram: boolean
  /** OOM kills of the whole machine, before the Run started and now. */
  readonly machineOomKillsBefore: number
  readonly machineOomKills: number
}

/**
 * Decides whether the kernel killed the engine for lack of memory: in the Run's cgroup, or because the machine had none left.
 * A SIGKILL alone proves nothing; the machine's counter must have risen too.
 */
export function findOomKill(run: Run, evidence: OomEvidence): StopCause | undefined {
  const { cgroupOomKills, peakMemoryBytes, limitBytes, hasKilledProgram, machineOomKillsBefore, machineOomKills } = evidence
  if (cgroupOomKills > 0) return stopCauseOf(run, { kind: 'Memory', used: peakMemoryBytes, limit: limitBytes ?? peakMemoryBytes })
  if (hasKilledProgram && machineOomKills > machineOomKillsBefore) return { kind: 'MachineOutOfMemory', used: peakMemoryBytes }
  return undefined
}
