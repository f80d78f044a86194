import { lstatSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** A running worker process that an earlier `oarlock up` on the same data directory started. `output` identifies the file it writes to. */
export type OrphanWorker = { readonly name: string; readonly pool: string; readonly pid: number; readonly output: string }

/**
 * Finds them by properties that each has from its start: its output is the file `<outputDirectory>/<name>.log`, it leads a session, and
 * its user is ours. So there is no record that a crash could prevent from being written. The file is compared by device and inode, not by
 * path: a process in another mount namespace has other files under the same path. Linux only: on other systems none is found.
 */
export function findOrphanWorkers(outputDirectory: string): OrphanWorker[] {
  const names = new Map(outputsIn(outputDirectory).map(({ name, output }) => [output, name]))
  if (names.size === 0) return []
  return pids().flatMap(pid => {
    const output = outputOf(pid) ?? ''
    const name = names.get(output)
    if (name === undefined || !isOwnProcess(pid) || !isSessionLeader(pid)) return []
    const args = commandOf(pid)
    const after = (option: string) => args[args.indexOf(option) + 1]
    const pool = after('--pool')
    return after('--name') === name && pool !== undefined ? [{ name, pool, pid, output }] : []
  })
}

/** Whether the process is still that worker, and not another process with the same id. */
export function isRunning({ pid, output }: OrphanWorker): boolean {
  return outputOf(pid) === output && isOwnProcess(pid)
}

export function signalOrphan(worker: OrphanWorker, signal: NodeJS.Signals): void {
  if (!isRunning(worker)) return
  try {
    process.kill(worker.pid, signal)
  } catch {
    // The process has just ended.
  }
}

type FileId = { dev: bigint; ino: bigint }
const fileId = ({ dev, ino }: FileId) => `${dev}:${ino}`

/** The outputs of workers in the directory, without symbolic links. */
function outputsIn(directory: string): { name: string; output: string }[] {
  return readdirSync(directory).flatMap(file => {
    if (!file.endsWith('.log')) return []
    const stats = lstatSync(join(directory, file), { bigint: true, throwIfNoEntry: false })
    return stats?.isFile() ? [{ name: file.slice(0, -'.log'.length), output: fileId(stats) }] : []
  })
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

/** The file itself, also after it was deleted. Undefined for processes of other users, and for those that have ended. */
function outputOf(pid: number): string | undefined {
  try {
    return fileId(statSync(`/proc/${pid}/fd/1`, { bigint: true }))
  } catch {
    return undefined
  }
}

/** Whether its real, effective, saved and file system user are all ours. Root can read the outputs of processes of all users. */
function isOwnProcess(pid: number): boolean {
  try {
    const [, users = ''] = /^Uid:\s*(.+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
    return users.split(/\s+/).every(user => Number(user) === process.geteuid?.())
  } catch {
    return false
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
