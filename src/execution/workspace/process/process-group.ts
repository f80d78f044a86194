import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * Who gets SIGINT. Group: every process, as with Ctrl-C in a terminal; a shell, for one, forwards no signal. Program: only the program that
 * leads the group. It stops what it started itself, and must count one signal: before its first process, a program in Go creates a child
 * that shares its memory and its signal handlers for a moment (os/exec's test for pidfd, Go 1.26.8; seen with ftrace), so that it counts a
 * signal to the group twice. terraform and opentofu then exit immediately, at worst in the middle of writing their state.
 */
export type InterruptTarget = 'Program' | 'Group'

/**
 * Sends `signal` to every process of the group that this process may signal, or SIGINT to the one that `interrupt` names: a process that sudo
 * started gets none from a worker that is not root. False when the group has no process left.
 * @throws {RangeError} for a group of 1 or less: `kill(-1)` would signal every process of the user.
 */
export function signalGroup(processGroupId: number, signal: NodeJS.Signals, interrupt: InterruptTarget = 'Group'): boolean {
  const group = -checked(processGroupId)
  const program = signal === 'SIGINT' && interrupt === 'Program' ? findProgram(processGroupId) : undefined
  try {
    process.kill(program ?? group, signal)
    // A stopped process handles SIGINT and SIGTERM only after SIGCONT.
    if (signal === 'SIGINT' || signal === 'SIGTERM') process.kill(group, 'SIGCONT')
    return true
  } catch (error) {
    if (isNoSuchProcess(error)) return false
    if ((error as NodeJS.ErrnoException).code === 'EPERM') return true
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

/**
 * The process that runs the group's program: its leader, or where that is the init process of a PID namespace, which bubblewrap creates and
 * which no SIGINT reaches, its first child. Undefined when the program has ended.
 */
function findProgram(leader: number): number | undefined {
  if (process.platform !== 'linux') return leader
  if (!isNamespaceInit(leader)) return isRunning(readStat(leader)) ? leader : undefined
  const children = readdirSync('/proc').flatMap(entry => {
    const fields = entry.charCodeAt(0) > 57 ? undefined : readStat(entry)
    return fields && Number(fields[1]) === leader && isRunning(fields) ? [{ pid: Number(entry), startTime: Number(fields[19]) }] : []
  })
  return children.sort((a, b) => a.startTime - b.startTime || a.pid - b.pid)[0]?.pid
}

/** The process has another id here than in its own PID namespace, where it is 1. */
function isNamespaceInit(pid: number): boolean {
  try {
    return /^NSpid:(?:\t\d+)+\t1$/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return false
  }
}

const isRunning = (fields: readonly string[] | undefined): boolean => fields !== undefined && !hasEnded(fields)

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
  const leader = readStat(processGroupId)
  if (leader && Number(leader[2]) === processGroupId) {
    if (isRunning(leader)) return true
    // The kernel ends the init process of a PID namespace after all others in it, and no other process can join its group.
    if (isNamespaceInit(processGroupId)) return false
  }
  for (const entry of readdirSync('/proc')) {
    if (entry.charCodeAt(0) > 57) continue
    const fields = readStat(entry)
    if (fields && Number(fields[2]) === processGroupId && isRunning(fields)) return true
  }
  return false
}

/**
 * Whether all threads have ended, from the fields of {@link readStat}. A process whose first thread has ended shows the state of a zombie (Z), while
 * others run.
 */
export function hasEnded(fields: readonly string[]): boolean {
  return (fields[0] === 'Z' || fields[0] === 'X') && Number(fields[17]) <= 1
}

/**
 * The path below /proc of a thread that shows what all threads of the process share: the first one, or if that has ended, which then shows no memory
 * and no environment, another.
 */
export function liveThreadPath(pid: number | string): string {
  const path = `/proc/${pid}`
  if (readStat(pid)?.[0] !== 'Z') return path
  try {
    const live = readdirSync(`${path}/task`).find(tid => /^[^ZX]$/.test(readStat(`${pid}/task/${tid}`)?.[0] ?? 'X'))
    return live === undefined ? path : `${path}/task/${live}`
  } catch {
    return path
  }
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
