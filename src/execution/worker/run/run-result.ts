import type { RunStatus } from '../../../api/index.ts'
import type { RunUsage } from '../../workspace/index.ts'

/** How the work of a Run ended, as its status reports it. */
export type RunResult = Partial<RunStatus> & Pick<RunStatus, 'phase'>

/** What the Run has used, for its status. */
export function usageStatus({ cpuSeconds, peakMemoryBytes, peakPids, peakDiskBytes }: RunUsage): NonNullable<RunResult['usage']> {
  const seconds = Math.round(cpuSeconds * 1_000) / 1_000
  return { cpuSeconds: seconds, peakMemoryBytes, peakPids, ...(peakDiskBytes > 0 && { peakDiskBytes }) }
}
