import type { RunStatus } from '../../../api/index.ts'
import type { RunUsage } from '../../workspace/index.ts'

/** How the work of a Run ended, as its status reports it. */
export type RunResult = Partial<RunStatus> & Pick<RunStatus, 'phase'>

/** What the Run has used, for its status; undefined if nothing was measured. A peak of 0 was not: the programs ended before the first sample. */
export function usageStatus({ cpuSeconds, peakMemoryBytes, peakPids, peakDiskBytes }: RunUsage): RunResult['usage'] {
  if (cpuSeconds === 0 && peakPids === 0 && peakMemoryBytes === 0) return undefined
  const seconds = Math.round(cpuSeconds * 1_000) / 1_000
  return { cpuSeconds: seconds, peakMemoryBytes, peakPids, ...(peakDiskBytes > 0 && { peakDiskBytes }) }
}
