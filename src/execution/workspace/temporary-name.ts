import { readStartTime } from './process/index.ts'

/** What a process that has ended left behind is removed after this time, also if it was in a container whose processes cannot be seen. */
const maxTemporaryMs = 60 * 60_000

/** The name of a cache entry that is not complete, or no longer: the process that has created it renames or removes it. */
export const temporaryName = (name: string) => `new-${process.pid}-${name}`

/** Whether `entry` is a {@link temporaryName} of a process that has ended. */
export function isAbandoned(entry: string, changedAtMs: number): boolean {
  const pid = /^new-(\d+)-/.exec(entry)?.[1]
  return pid !== undefined && readStartTime(Number(pid)) === undefined && Date.now() - changedAtMs > maxTemporaryMs
}
