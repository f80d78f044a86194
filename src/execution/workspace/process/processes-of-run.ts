import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { cgroupOfRun } from './cgroup.ts'
import { hasEnded, liveThreadPath, readStat } from './process-group.ts'
import { hasMark, type ProcessMark, runMark, stackMark } from './process-mark.ts'

/** In the environment of every process of a Run, so that a process that left the group (setsid) can be found. */
export const runUidVariable = 'OARLOCK_RUN_UID'
/** In the environment of every process of a Run that may write: the UID of its Stack. */
export const mutatedStackVariable = 'OARLOCK_WRITES_STACK_UID'

/** Processes of this user with the Run's UID in their environment or with its mark, without this process. Empty on systems without /proc. */
export function findRunProcesses(runUid: string): number[] {
  return findProcesses(runIdentity(runUid))
}

/**
 * A process and all that descend from it. For the init process of a PID namespace these are all processes of the namespace, whatever they did to
 * their environment: an orphan becomes a child of init. Their parents can be read for every process, their namespaces cannot.
 */
export function findDescendants(root: number): number[] {
  const children = new Map<number, number[]>()
  for (const entry of readdirSync('/proc')) {
    const parent = entry.charCodeAt(0) > 57 ? undefined : readStat(entry)?.[1]
    if (parent !== undefined) children.set(Number(parent), [...(children.get(Number(parent)) ?? []), Number(entry)])
  }
  const found = [root]
  for (const pid of found) found.push(...(children.get(pid) ?? []))
  return found
}

/** Whether the process is in a PID namespace below that of this process, such as a sandbox. False if it has ended. */
export function isInInnerNamespace(pid: number): boolean {
  try {
    return /^NSpid:\t\d+\t/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return false
  }
}

/** Whether a process has the Run's UID in its environment, or its mark. False if it cannot be read. */
export function isRunProcess(pid: number, runUid: string): boolean {
  return hasIdentity(String(pid), runIdentity(runUid))
}

/** How a process is recognized that left its group: by a variable, and if it has cleared its environment by a mark. */
type Identity = { variable: string; value: string; mark: Partial<ProcessMark> }

const runIdentity = (uid: string): Identity => ({ variable: runUidVariable, value: uid, mark: runMark(uid) })
const stackIdentity = (uid: string): Identity => ({ variable: mutatedStackVariable, value: uid, mark: stackMark(uid) })

/** `others`: processes that a scan just before has found not to be of this identity. They are skipped; those that this scan finds are added. */
function findProcesses(identity: Identity, others = new Set<string>()): number[] {
  if (process.platform !== 'linux') return []
  const found: number[] = []
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry)
    if (!Number.isInteger(pid) || pid <= 1 || pid === process.pid || others.has(entry)) continue
    const environment = readEnvironment(entry)
    if (isIdentified(entry, environment, identity)) found.push(pid)
    // An environment that is empty may be that of a program which is being started.
    else if (environment === undefined || environment.length > 0) others.add(entry)
  }
  return found
}

const hasIdentity = (pid: string, identity: Identity): boolean => isIdentified(pid, readEnvironment(pid), identity)

function isIdentified(pid: string, environment: Buffer | undefined, { variable, value, mark }: Identity): boolean {
  if (environment === undefined) return false
  const at = environment.indexOf(`${variable}=${value}\0`)
  const hasVariable = at === 0 || (at > 0 && environment[at - 1] === 0)
  // A zombie has no environment, but keeps its limits.
  return hasVariable || (hasMark(pid, mark) && !isZombie(Number(pid)))
}

/** Empty if it may not be read, as that of ssh-agent; undefined if the process has ended or is a thread of the kernel, as more than half are. */
function readEnvironment(pid: string): Buffer | undefined {
  const first = tryReadEnvironment(`/proc/${pid}`)
  if (first !== undefined && first.length > 0) return first
  const path = liveThreadPath(pid)
  return path === `/proc/${pid}` ? first : tryReadEnvironment(path)
}

function tryReadEnvironment(path: string): Buffer | undefined {
  try {
    return readFileSync(`${path}/environ`)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ESRCH' || code === 'ENOENT' ? undefined : Buffer.alloc(0)
  }
}

/**
 * Kills every process of the Run with SIGKILL, in any group or session, and resolves when two scans in a row found none (one scan can miss
 * a child that is being forked). Never kills this process.
 * Returns the number of killed processes. Stops after `timeoutMs`, even if processes are left.
 */
export async function killRunProcesses(runUid: string, timeoutMs = 10_000): Promise<number> {
  // The cgroup kills all processes atomically, so one that forks faster than the scan cannot escape. A process outside of the cgroup is found by
  // its environment or its mark.
  cgroupOfRun(runUid)?.kill()
  return (await killProcesses(runIdentity(runUid), timeoutMs)).killed
}

/**
 * Kills every process on this machine that an earlier Run of the Stack left behind and that may write. The holder of the Stack's lock
 * calls it before its engine starts (invariant 1): when worker and supervisor of the earlier Run were both killed, or are both stopped,
 * nothing else does. Returns the number of killed processes.
 * @throws {Error} when processes are left after `timeoutMs`: the engine must not start while they run.
 */
export async function killStackWriters(stackUid: string, timeoutMs = 10_000): Promise<number> {
  const { killed, isClean } = await killProcesses(stackIdentity(stackUid), timeoutMs)
  const remaining = isClean ? [] : findProcesses(stackIdentity(stackUid)).filter(pid => !isZombie(pid))
  if (remaining.length === 0) return killed
  throw new Error(`processes ${remaining.join(', ')} of an earlier run of the stack did not end within ${timeoutMs} ms`)
}

/** `isClean`: two scans in a row found none; the second one reads only processes that are new, because the environments of a few hundred take a while. */
async function killProcesses(identity: Identity, timeoutMs: number): Promise<{ killed: number; isClean: boolean }> {
  const killed = new Set<number>()
  const deadline = performance.now() + timeoutMs
  let cleanScans = 0
  let others = new Set<string>()
  while (cleanScans < 2 && performance.now() < deadline) {
    const pids = findProcesses(identity, others).filter(pid => !isZombie(pid))
    if (pids.length > 0) others = new Set()
    cleanScans = pids.length === 0 ? cleanScans + 1 : 0
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL')
        killed.add(pid)
      } catch {
        // It ended between scan and kill, or belongs to another user and so not to the Run.
      }
    }
    if (cleanScans < 2) await delay(pids.length === 0 ? 2 : 10)
  }
  return { killed: killed.size, isClean: cleanScans >= 2 }
}

/**
 * Start time of the process in clock ticks since boot. Pid and start time identify a process uniquely, although pids are reused.
 * Undefined when the process does not exist or is a zombie, which may never be reaped.
 */
export function readStartTime(pid: number): string | undefined {
  return isZombie(pid) ? undefined : readStat(pid)?.[19]
}

function isZombie(pid: number): boolean {
  const fields = readStat(pid)
  return fields === undefined || hasEnded(fields)
}
