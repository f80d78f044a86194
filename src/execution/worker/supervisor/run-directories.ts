import { readdirSync, readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { cgroupOfRun, killRunProcesses, readStartTime } from '../../workspace/process/index.ts'
import { removeTree } from '../../workspace/run-directory.ts'
import { keepForRecovery, salvageUnlessSaved } from './supervised-worker.ts'
import { ownerPrefix, recordName, type SupervisedRunSpec, unsavedMarkerName } from './supervisor-protocol.ts'

/** A directory that names no keeper is being made, or its maker was killed while making it. */
const unownedGraceMs = 60_000
/** Worker and supervisor died at once, perhaps with the store: the next sweep tries again, so this one need not wait long. */
const salvageMs = 20_000

/**
 * Removes the directories of Runs whose worker and supervisor are both gone, with every process that is left of them (invariant 10). Their
 * last state is saved first, with their epoch: a Run that has begun since finds it kept aside (invariant 3).
 * A directory whose state could not be saved is kept for `keepMs` (default: a day).
 */
export async function sweepRunDirectories(runsDir: string, nowMs: number, keepMs = 24 * 3_600_000): Promise<string[]> {
  const removed: string[] = []
  for (const name of listDirectory(runsDir)) {
    const root = join(runsDir, name)
    const atMs = (await stat(root).catch(() => undefined))?.mtimeMs
    if (atMs === undefined) continue
    const keepers = listDirectory(root).filter(entry => entry.startsWith(ownerPrefix))
    if (keepers.length === 0 ? nowMs - atMs < unownedGraceMs : keepers.some(keeper => isAlive(root, keeper))) continue
    await killRunProcesses(name)
    await cgroupOfRun(name)?.remove()
    const isKept = listDirectory(root).includes(unsavedMarkerName)
    if (isKept && nowMs - atMs < keepMs) continue
    const why = isKept ? undefined : await saveState(root)
    if (why !== undefined) {
      keepForRecovery(root, recordName, why)
      continue
    }
    await removeTree(root)
    removed.push(name)
  }
  return removed
}

async function saveState(root: string): Promise<string | undefined> {
  let run: SupervisedRunSpec
  try {
    run = JSON.parse(readFileSync(join(root, recordName), 'utf8')) as SupervisedRunSpec
  } catch {
    // Killed before it was supervised: no engine has started.
    return undefined
  }
  return run.salvage && (await salvageUnlessSaved(run.salvage, undefined, salvageMs))
}

function isAlive(root: string, keeper: string): boolean {
  const pid = Number(keeper.slice(ownerPrefix.length))
  const startTime = readStartTime(pid)
  if (startTime !== undefined) return startTime === readFileSync(join(root, keeper), 'utf8')
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
