import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname } from 'node:path'

/** A running worker process that an earlier `oarlock up` on the same data directory started. */
export type OrphanWorker = { readonly name: string; readonly pool: string; readonly pid: number; readonly output: string }

/**
 * Finds them by properties that each has from its start: its output is `<outputDirectory>/<name>.log`, and it leads a session. So there
 * is no record that a crash could prevent from being written. Linux only: on other systems none is found.
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

/** Whether the process is still that worker, and not another process with the same id. */
export function isRunning({ pid, output }: OrphanWorker): boolean {
  return outputOf(pid) === output
}

export function signalOrphan(worker: OrphanWorker, signal: NodeJS.Signals): void {
  if (!isRunning(worker)) return
  try {
    process.kill(worker.pid, signal)
  } catch {
    // The process has just ended.
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

/** Undefined for processes of other users, and for those that have ended. */
function outputOf(pid: number): string | undefined {
  try {
    // Linux marks a file that was removed.
    return readlinkSync(`/proc/${pid}/fd/1`).replace(/ \(deleted\)$/, '')
  } catch {
    return undefined
  }
}

/** proc(5): `pid (comm) state ppid pgrp session …`; comm may contain any character. */
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
