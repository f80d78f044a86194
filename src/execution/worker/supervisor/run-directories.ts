import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cgroupOfRun, killRunProcesses, readStartTime } from '../../workspace/process/index.ts'
import { removeTree } from '../../workspace/run-directory.ts'
import { keepForRecovery, salvageUnlessSaved } from './supervised-worker.ts'
import { ownerPrefix, recordName, type SupervisedRunSpec, unsavedMarkerName } from './supervisor-protocol.ts'

/** A directory without an owner file is being created, or its creator was killed. */
const unownedGraceMs = 60_000
/** If worker and supervisor were killed together, the store may be down too. The next sweep retries, so this one waits only briefly. */
const salvageMs = 20_000

/**
 * Removes the directories of Runs whose worker and supervisor have both exited, with every process of these Runs (invariant 10). The last
 * state is saved first, with the Run's epoch: if a newer Run has started, it becomes an orphan (invariant 3).
 * A directory whose state could not be saved is kept for `keepMs` (default: a day).
 */
export async function sweepRunDirectories(runsDir: string, nowMs: number, keepMs = 24 * 3_600_000): Promise<string[]> {
  const removed: string[] = []
  for (const name of listDirectory(runsDir)) {
    // One that cannot be removed, such as that of a Run that left something mounted in it, does not keep the others.
    if (await sweepDirectory(join(runsDir, name), nowMs, keepMs).catch(() => false)) removed.push(name)
  }
  return removed
}

/** Returns whether it was removed. */
async function sweepDirectory(root: string, nowMs: number, keepMs: number): Promise<boolean> {
  const uid = basename(root)
  const atMs = (await stat(root).catch(() => undefined))?.mtimeMs
  if (atMs === undefined) return false
  const owners = listDirectory(root).filter(entry => entry.startsWith(ownerPrefix))
  if (owners.length === 0 ? nowMs - atMs < unownedGraceMs : owners.some(owner => isAlive(root, owner))) return false
  if (owners.length === 0 && !isRunDirectory(root)) return false
  await killRunProcesses(uid)
  await cgroupOfRun(uid)?.remove()
  const isKept = listDirectory(root).includes(unsavedMarkerName)
  if (isKept && nowMs - atMs < keepMs) return false
  const failure = isKept ? undefined : await saveState(root)
  if (failure !== undefined) {
    keepForRecovery(root, recordName, failure)
    return false
  }
  await removeTree(root)
  return true
}

/** Its name is the UID of a Run: anything else in a directory that a worker named by mistake is kept. */
function isRunDirectory(root: string): boolean {
  const stats = lstatSync(root, { throwIfNoEntry: false })
  return stats?.isDirectory() === true && stats.uid === process.geteuid?.() && uidPattern.test(basename(root))
}

const uidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

async function saveState(root: string): Promise<string | undefined> {
  let run: SupervisedRunSpec
  try {
    run = JSON.parse(readFileSync(join(root, recordName), 'utf8')) as SupervisedRunSpec
  } catch {
    // Killed before it was supervised: no engine was started.
    return undefined
  }
  // Only the file below this directory: the record may be older than the path that the directory has now.
  return await salvageUnlessSaved({ salvage: run.salvage, directory: root }, undefined, salvageMs)
}

function isAlive(root: string, owner: string): boolean {
  const pid = Number(owner.slice(ownerPrefix.length))
  const startTime = readStartTime(pid)
  if (startTime !== undefined) return startTime === readFileSync(join(root, owner), 'utf8')
  if (process.platform === 'linux') return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function listDirectory(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
