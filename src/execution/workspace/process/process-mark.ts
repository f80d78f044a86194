import { readFileSync, statSync } from 'node:fs'
import { fnv1a64 } from '../../../kubernetes/object/fnv-1a.ts'
import { isExecutable } from './is-executable.ts'

/**
 * A mark that every process of a Run inherits, in any group, session and environment, and that another process can read: RLIMIT_LOCKS, which
 * Linux has accepted and ignored since 2.4.25 (setrlimit(2)). The soft limit identifies the Run, the hard limit, if the Run may write, its
 * Stack. A program can change its mark, as it can kill its worker: at level Process it is no boundary.
 */
export type ProcessMark = { readonly soft: string; readonly hard?: string }

export const runMark = (runUid: string) => ({ soft: String(hash(runUid)) })
/** Higher than every soft limit. */
export const stackMark = (stackUid: string) => ({ hard: String((1n << 60n) + hash(stackUid)) })

const paths = ['/usr/bin/prlimit', '/bin/prlimit']

export const canMarkProcesses = (): boolean => findPrlimit() !== undefined

/** The command by which a shell marks itself, and what it becomes; undefined where processes cannot be marked. */
export function markShell(mark: ProcessMark): string | undefined {
  const prlimit = findPrlimit()
  return prlimit === undefined ? undefined : `${prlimit} --pid $$ --locks=${mark.soft}:${mark.hard ?? 'unlimited'}`
}

/** util-linux, on Linux. A process with a mark, such as a worker in a Run of another, cannot raise its limit. */
function findPrlimit(): string | undefined {
  if (process.platform !== 'linux' || readLimits('self')?.hard !== 'unlimited') return undefined
  return paths.find(isExecutable)
}

/** Whether the process has the mark of the Run or of the Stack, and this process may signal it. */
export function hasMark(pid: string, mark: Partial<ProcessMark>): boolean {
  const limits = readLimits(pid)
  if (!limits || !((limits.soft === mark.soft && mark.soft !== undefined) || (limits.hard === mark.hard && mark.hard !== undefined)))
    return false
  const uid = process.geteuid?.()
  return uid === 0 || statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === uid
}

function readLimits(pid: string): ProcessMark | undefined {
  try {
    const found = /^Max file locks +(\S+) +(\S+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))
    return found ? { soft: found[1]!, hard: found[2]! } : undefined
  } catch {
    return undefined
  }
}

/** The lowest 52 bits of FNV-1a (64 bits). node:crypto takes 5 ms to load. */
function hash(text: string): bigint {
  const [high, low] = fnv1a64(text)
  return (BigInt(high & 0xf_ffff) << 32n) | BigInt(low)
}
