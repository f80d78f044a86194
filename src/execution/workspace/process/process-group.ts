import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * Sends `signal` to every process of the group. False when there is none left.
 * A group of 1 or below would be everybody's (`kill(-1)`): refused.
 */
export function signalGroup(processGroupId: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-checked(processGroupId), signal)
    // A stopped process takes SIGINT and SIGTERM only once it goes on.
    if (signal === 'SIGINT' || signal === 'SIGTERM') process.kill(-processGroupId, 'SIGCONT')
    return true
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

/** True while a process of the group can still do something: zombies, which nobody may ever reap in a container, do not count. */
export function groupExists(processGroupId: number): boolean {
  try {
    process.kill(-checked(processGroupId), 0)
  } catch (error) {
    return !isGone(error)
  }
  return process.platform !== 'linux' || hasLiveMember(processGroupId)
}

/**
 * Kills the group with SIGKILL and resolves when it is gone. What is in an uninterruptible system call dies only after it:
 * false when `timeoutMs` went by before that.
 */
export async function killGroup(processGroupId: number, timeoutMs = 30_000): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 50)) {
    if (!groupExists(processGroupId)) return true
    // Sent each time: a member may have forked between two looks.
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

function isGone(error: unknown): boolean {
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

/** The fields of /proc/<pid>/stat from the third on (state, parent, group, session, …); the name before them may hold anything. */
export function readStat(pid: number | string): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}
