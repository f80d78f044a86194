import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { unsavedMarkerName } from './supervisor-protocol.ts'

/** Number of directories of Runs that are kept because the stores did not accept the last state. They are deleted after a day. */
export function countUnsavedStates(runsDir: string): number {
  try {
    return readdirSync(runsDir).filter(name => existsSync(join(runsDir, name, unsavedMarkerName))).length
  } catch {
    // No Run has been executed here, or the directory cannot be read.
    return 0
  }
}
