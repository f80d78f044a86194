import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname } from 'node:path'

/** A worker's process that an earlier `oarlock up` on the same data directory started, and that goes on. */
export type OrphanWorker = { readonly name: string; readonly pool: string; readonly pid: number; readonly output: string }

/**
 * Finds them by what each has from the moment it exists: its output goes to `<outputDirectory>/<name>.log`, and it leads a session of its
 * own. So nothing has to be written down that a crash could keep from being written. Linux only: elsewhere there are none to be found.
 */
export function findOrphanWorkers(outputDirectory: string): OrphanWorker[] {
  const directory = realpathSync(outputDirectory)
  return pids().flatMap(pid => {
    const output = outputOf(pid)
    if (output === undefined || dirname(output) !== directory || !isSessionLeader(pid)) return []
    const args = commandOf(pid)
    const after = (option: string) => args[args.indexOf(option) + 1]
    const name = basename(output, '.log')
    const pool = after('--pool')
    return after('--name') === name && pool !== undefined ? [{ name, pool, pid, output }] : []
  })
}

/** Whether the process is still that worker, and not another one that got its number. */
export function isRunning({ pid, output }: OrphanWorker): boolean {
  return outputOf(pid) === output
}

export function signalOrphan(worker: OrphanWorker, signal: NodeJS.Signals): void {
  if (!isRunning(worker)) return
  try {
    process.kill(worker.pid, signal)
  } catch {
    // It has just ended.
  }
}

function pids(): number[] {
  try {
    return readdirSync('/proc')
      .filter(entry => /^\d+$/.test(entry))
      .map(Number)
  } catch {
    return []
  }
}

/** Undefined for processes of others, and for those that have ended. */
function outputOf(pid: number): string | undefined {
  try {
    // A file that was removed meanwhile is marked so.
    return readlinkSync(`/proc/${pid}/fd/1`).replace(/ \(deleted\)$/, '')
  } catch {
    return undefined
  }
}

/** proc(5): `pid (comm) state ppid pgrp session …`; comm may hold anything. */
function isSessionLeader(pid: number): boolean {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[3]) === pid
  } catch {
    return false
  }
}

function commandOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return []
  }
}
