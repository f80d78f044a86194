import type { CrashReason } from '../../../api/index.ts'

/** How the process of a worker has ended. */
export type WorkerExit = {
  /** Undefined if a signal ended it. */
  readonly exitCode: number | undefined
  readonly signal: string | undefined
  /** The driver has asked the worker to stop. */
  readonly isStopped: boolean
  /** The kernel has killed processes for lack of memory while it ran, or the kubelet reports that of its container. */
  readonly hasOomKill: boolean
}

/** Signals by which the kernel or a process itself reports a bug: with their numbers, because a shell and a container exit with 128 + number. */
const crashSignals: Readonly<Record<string, number>> = { SIGILL: 4, SIGTRAP: 5, SIGABRT: 6, SIGBUS: 7, SIGFPE: 8, SIGSEGV: 11, SIGSYS: 31 }
const crashNumbers = new Set(Object.values(crashSignals))
const killNumber = 9

/** Exit codes by which a worker reports what no Run causes (src/execution/worker/exit-codes.ts): settings, its Lease, its registration, its
 * credential, its machine, its supervisor. */
const reportedCodes = new Set([0, 2, 3, 4, 5, 6, 7])

/**
 * Whether a worker has crashed. Only evidence counts: a SIGKILL without an OOM kill may come from anyone, such as an administrator or the test of a
 * recovery, and so may SIGTERM, SIGINT and SIGHUP.
 */
export function crashOf({ exitCode, signal, isStopped, hasOomKill }: WorkerExit): CrashReason | undefined {
  if (isStopped) return undefined
  const number = exitCode !== undefined && exitCode > 128 ? exitCode - 128 : undefined
  if (signal === 'SIGKILL' || number === killNumber) return hasOomKill ? 'WorkerOutOfMemory' : undefined
  if (signal !== undefined) return signal in crashSignals ? 'WorkerCrashed' : undefined
  if (exitCode === undefined || reportedCodes.has(exitCode)) return undefined
  return number === undefined || crashNumbers.has(number) ? 'WorkerCrashed' : undefined
}
