import { chmodSync, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { makeDirectories } from './make-directories.ts'

/** A directory that other users can access, and whose mode this process cannot change, or one with half of a restored backup. */
export class UnusableDirectoryError extends Error {
  override readonly name = 'UnusableDirectoryError'
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.hint = hint
  }
}

const accessOfOthers = 0o077

/** In a data directory while a backup is restored into it: what is there is neither the old data nor that of the backup. */
export const restoreMarker = 'restore.incomplete'

/**
 * Creates a directory for keys and data with mode 0700. Who can write an existing one can replace the keys in it, and who can read it sees
 * names and sizes, so all access of the group and of others is removed if this process owns the directory.
 * @throws {UnusableDirectoryError} if it does not, or a backup was restored to it in part; or the error of `mkdir`, `stat` or `chmod`.
 * @returns what changed, for the log; undefined if nothing did.
 */
export function makeDataDirectory(path: string, ownUid = process.geteuid?.()): string | undefined {
  makeDirectories(path, 0o700)
  if (existsSync(join(path, restoreMarker)))
    throw new UnusableDirectoryError(`the restore of a backup to ${path} has not finished`, 'repeat it, with --force')
  const { mode, uid } = statSync(path)
  // Without user ids (Windows), modes mean nothing.
  if (ownUid === undefined || (mode & accessOfOthers) === 0) return undefined
  const octal = (mode & 0o7777).toString(8).padStart(4, '0')
  if (uid !== ownUid)
    throw new UnusableDirectoryError(
      `other users can access ${path} (mode ${octal}, owner ${uid})`,
      `run "chmod 700 ${path}" as its owner, or choose a subdirectory of it, which is created with mode 0700`,
    )
  chmodSync(path, mode & 0o7777 & ~accessOfOthers)
  return `other users could access ${path} (mode ${octal}); its mode is now 0700`
}
