import { statfsSync } from 'node:fs'

const minFreeBytes = 1024 * 1024

/** Why writes below the data directory `directory` fail, as a list of readiness reasons: empty while its disk has space. */
export function fullDiskReasons(directory: string): string[] {
  try {
    const { bavail, bsize } = statfsSync(directory)
    if (bavail * bsize >= minFreeBytes) return []
  } catch {
    // Not the space: the error of the next write has the reason.
    return []
  }
  return ['less than 1 MiB is free on the disk of the data directory: writes are rejected when it is full, reads continue; free some space']
}
