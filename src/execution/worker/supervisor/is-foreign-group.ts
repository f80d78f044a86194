import { hasEnded, isRunProcess, readStat } from '../../workspace/process/index.ts'

/**
 * Whether a process group is known not to be one of the Run: its leader is neither a child of the worker nor recognized as a process of the Run.
 * A worker's report may be wrong, and a signal cannot be taken back. False if the leader has exited, and on systems without /proc.
 */
export function isForeignGroup(processGroupId: number, { uid, workerPid }: { uid: string; workerPid: number }): boolean {
  const fields = readStat(processGroupId)
  if (!fields || hasEnded(fields)) return false
  const [, parent, group] = fields
  if (Number(group) !== processGroupId) return true
  return Number(parent) !== workerPid && !isRunProcess(processGroupId, uid)
}
