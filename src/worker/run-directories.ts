import { readdirSync, readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { cgroupOfRun, killRunProcesses, readStartTime, removeTree } from '../workspace/index.ts'
import { keeperPrefix, unsavedMark } from './guard-protocol.ts'

/** A directory that names no keeper is being made, or its maker was killed while making it. */
const unnamedMs = 60_000

/**
 * Removes the directories of Runs whose worker and guard are both gone, with every process that is left of them (invariant 10).
 * A directory that a guard gave up on is kept for `keepMs` (default: a day): its state file could not be saved anywhere else.
 */
export async function sweepRunDirectories(runsDir: string, nowMs: number, keepMs = 24 * 3_600_000): Promise<string[]> {
  const removed: string[] = []
  for (const name of list(runsDir)) {
    const root = join(runsDir, name)
    const atMs = (await stat(root).catch(() => undefined))?.mtimeMs
    if (atMs === undefined) continue
    const keepers = list(root).filter(entry => entry.startsWith(keeperPrefix))
    if (keepers.length === 0 ? nowMs - atMs < unnamedMs : keepers.some(keeper => isAlive(root, keeper))) continue
    await killRunProcesses(name)
    await cgroupOfRun(name)?.remove()
    if (list(root).includes(unsavedMark) && nowMs - atMs < keepMs) continue
    await removeTree(root)
    removed.push(name)
  }
  return removed
}

function isAlive(root: string, keeper: string): boolean {
  const pid = Number(keeper.slice(keeperPrefix.length))
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

function list(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
