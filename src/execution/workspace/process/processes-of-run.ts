import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { cgroupOfRun } from './cgroup.ts'
import { readStat } from './process-group.ts'

/** Every process of a Run carries this in its environment; a process that left the group (setsid) is found by it. */
export const runUidVariable = 'OARLOCK_RUN_UID'
/** Every process of a Run that may write carries the UID of its Stack in this one. */
export const mutatedStackVariable = 'OARLOCK_WRITES_STACK_UID'

/** The processes of this user that carry the Run's UID in their environment, without this process. Empty where there is no /proc. */
export function findRunProcesses(runUid: string): number[] {
  return findMarked(runUidVariable, runUid)
}

function findMarked(variable: string, value: string): number[] {
  if (process.platform !== 'linux') return []
  const wanted = Buffer.from(`${variable}=${value}\0`)
  const found: number[] = []
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry)
    if (!Number.isInteger(pid) || pid <= 1 || pid === process.pid) continue
    let environment: Buffer
    try {
      environment = readFileSync(`/proc/${entry}/environ`)
    } catch {
      continue
    }
    const at = environment.indexOf(wanted)
    if (at === 0 || (at > 0 && environment[at - 1] === 0)) found.push(pid)
  }
  return found
}

/**
 * Kills every process of the Run with SIGKILL, whatever group or session it hides in, and resolves when two looks in a row
 * found none (one look can miss a child that is being born). Never kills this process.
 * Returns how many it killed. Gives up after `timeoutMs`, with what is left still there.
 */
export async function killRunProcesses(runUid: string, timeoutMs = 10_000): Promise<number> {
  // All at once, so that one which forks faster than we look cannot win; what was started outside of the cgroup is found by its mark.
  cgroupOfRun(runUid)?.kill()
  return (await killMarked(runUidVariable, runUid, timeoutMs)).killed
}

/**
 * Kills every process on this machine that an earlier Run of the Stack left behind and that may write. Whoever holds the Stack's lock
 * calls it before its engine starts (invariant 1): when worker and supervisor of the earlier Run were both killed, or both stand still,
 * nobody else does. Returns how many it killed.
 * @throws {Error} when some are still there after `timeoutMs`: nothing may start beside them.
 */
export async function killStackWriters(stackUid: string, timeoutMs = 10_000): Promise<number> {
  const { killed, isClean } = await killMarked(mutatedStackVariable, stackUid, timeoutMs)
  const left = isClean ? [] : findMarked(mutatedStackVariable, stackUid).filter(pid => !isZombie(pid))
  if (left.length === 0) return killed
  throw new Error(`processes ${left.join(', ')} of an earlier run of the stack did not end within ${timeoutMs} ms`)
}

/** `isClean`: two looks in a row found none. */
async function killMarked(variable: string, value: string, timeoutMs: number): Promise<{ killed: number; isClean: boolean }> {
  const killed = new Set<number>()
  const deadline = performance.now() + timeoutMs
  let clean = 0
  while (clean < 2 && performance.now() < deadline) {
    const pids = findMarked(variable, value).filter(pid => !isZombie(pid))
    clean = pids.length === 0 ? clean + 1 : 0
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL')
        killed.add(pid)
      } catch {
        // Gone between the look and the kill, or of another user: then it was not one of ours.
      }
    }
    if (clean < 2) await delay(pids.length === 0 ? 2 : 10)
  }
  return { killed: killed.size, isClean: clean >= 2 }
}

/**
 * When the process started, in clock ticks since boot: with the pid it names one process for good, although pids are reused.
 * Undefined when it is not there, or only as a zombie, which nobody may ever reap.
 */
export function readStartTime(pid: number): string | undefined {
  return isZombie(pid) ? undefined : readStat(pid)?.[19]
}

function isZombie(pid: number): boolean {
  const state = readStat(pid)?.[0]
  return state === undefined || state === 'Z' || state === 'X'
}
