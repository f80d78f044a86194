import { lstatSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeDataDirectory, makeDirectories } from '../../kubernetes/util/index.ts'
import { WorkerOptionError } from './worker-option-error.ts'

/** Where a worker without OARLOCK_RUNS_DIR and OARLOCK_CACHE_DIR keeps them. Every user can create this directory first. */
export const defaultWorkerDirectory = (): string => join(tmpdir(), `oarlock-worker-${process.getuid?.() ?? 0}`)

export type WorkerDirectories = { runsDir: string; cacheDir: string }

/**
 * Creates the directories of a worker and checks that no other user owns one: that user could place records of Runs there, whose files the
 * supervisor uploads and whose processes it ends, and programs that engines start. The default directory must have mode 0700.
 * @throws {WorkerOptionError} naming the directory, its owner and what to do.
 */
export function prepareWorkerDirectories({ runsDir, cacheDir }: WorkerDirectories, base = defaultWorkerDirectory()): void {
  const ownUid = process.getuid?.()
  if (ownUid === undefined) return
  const reject = (path: string, why: string): never => {
    throw new WorkerOptionError(`${path} ${why}; remove it, or set OARLOCK_RUNS_DIR and OARLOCK_CACHE_DIR to other directories`)
  }
  if ([runsDir, cacheDir].some(path => path.startsWith(`${base}/`))) {
    makeDirectories(base, 0o700)
    const stats = lstatSync(base)
    if (!stats.isDirectory()) reject(base, 'is not a directory')
    if (stats.uid !== ownUid) reject(base, `belongs to user ${stats.uid}`)
    makeDataDirectory(base)
  }
  for (const path of [runsDir, cacheDir]) {
    makeDirectories(path, 0o700)
    const { uid } = statSync(path)
    // A volume of a Pod belongs to root.
    if (uid !== ownUid && uid !== 0) reject(path, `belongs to user ${uid}`)
  }
}
