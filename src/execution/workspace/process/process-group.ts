import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * Sends `signal` to every process of the group. False when the group has no process left.
 * @throws {RangeError} for a group of 1 or less: `kill(-1)` would signal every process of the user.
 */
export function signalGroup(processGroupId: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-checked(processGroupId), signal)
    // A stopped process handles SIGINT and SIGTERM only after SIGCONT.
    if (signal === 'SIGINT' || signal === 'SIGTERM') process.kill(-processGroupId, 'SIGCONT')
    return true
  } catch (error) {
    if (isNoSuchProcess(error)) return false
    throw error
  }
}

/** True while a process of the group can run. Zombies do not count: in a container they may never be reaped. */
export function groupExists(processGroupId: number): boolean {
  try {
    process.kill(-checked(processGroupId), 0)
  } catch (error) {
    return !isNoSuchProcess(error)
  }
  return process.platform !== 'linux' || hasLiveMember(processGroupId)
}

/**
 * Kills the group with SIGKILL and resolves when it has no process left. A process in an uninterruptible system call ends only after that
 * call; the result is false when `timeoutMs` has passed before.
 */
export async function killGroup(processGroupId: number, timeoutMs = 30_000): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 50)) {
    if (!groupExists(processGroupId)) return true
    // Sent each time: a member may have forked since the last signal.
    if (!signalGroup(processGroupId, 'SIGKILL')) return true
    if (performance.now() >= deadline) return false
    await delay(waitMs)
  }
}

function checked(processGroupId: number): number {
  if (!Number.isInteger(processGroupId) || processGroupId <= 1) {
    throw new RangeError(`processGroupId must be a whole number > 1, got ${processGroupId}`)
  }
  return processGroupId
}

function isNoSuchProcess(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ESRCH'
}

function hasLiveMember(processGroupId: number): boolean {
  for (const entry of readdirSync('/proc')) {
    if (entry.charCodeAt(0) > 57) continue
    const fields = readStat(entry)
    if (fields && Number(fields[2]) === processGroupId && fields[0] !== 'Z' && fields[0] !== 'X') return true
  }
  return false
}

/** The fields of /proc/<pid>/stat from the third on (state, parent, group, session, …); the name before them may contain any character. */
export function readStat(pid: number | string): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}
