import { readdirSync, readFileSync, type Stats, statfsSync, statSync } from 'node:fs'
import { liveThreadPath, readStat } from '../process/index.ts'
import type { Slices } from './slices.ts'

/** File systems in memory (statfs(2)): tmpfs and hugetlbfs. What is in them counts as memory. */
const memoryFileSystems = new Set([0x01021994, 0x958458f6])
/** Deleted mappings that are memory, by their name; no program can create files in these places of a sandbox. */
const memoryMapping = /^\/(memfd:|dev\/|SYSV|\[|anon_hugepage)/

/**
 * Bytes of files that the processes have deleted and still use: open, in every thread, because each may have descriptors of its own, and mapped.
 * `problem`: what cannot be read, of processes that exist.
 */
export async function findDeletedFiles(pids: readonly number[], slices: Slices): Promise<{ bytes: number; problem?: string }> {
  const files = new Map<string, number>()
  let problem: string | undefined
  for (const pid of pids) {
    for (const tid of list(`/proc/${pid}/task`) ?? []) {
      problem ??= await addOpenFiles(pid, tid, files, slices)
      await slices.pauseIfDue()
    }
    addMappedFiles(pid, files)
  }
  let bytes = 0
  for (const size of files.values()) bytes += size
  return { bytes, ...(problem !== undefined && { problem }) }
}

async function addOpenFiles(pid: number, tid: string, files: Map<string, number>, slices: Slices): Promise<string | undefined> {
  const directory = `/proc/${pid}/task/${tid}`
  const descriptors = list(`${directory}/fd`)
  if (!descriptors) {
    const state = readStat(`${pid}/task/${tid}`)?.[0] ?? 'X'
    return state === 'Z' || state === 'X' ? undefined : 'the open files of a process cannot be read, because it is not dumpable'
  }
  let problem: string | undefined
  for (const descriptor of descriptors) {
    const path = `${directory}/fd/${descriptor}`
    const stats = statIfExists(path)
    if (stats?.isSocket() && filesInTransit(`${directory}/fdinfo/${descriptor}`) > 0)
      problem ??= 'a process keeps open files in transit through a socket (SCM_RIGHTS), where they cannot be measured'
    if (stats?.isFile() && stats.nlink === 0 && !isInMemory(path)) files.set(`${deviceOf(stats)}:${stats.ino}`, stats.blocks * 512)
    await slices.pauseIfDue()
  }
  return problem
}

/** The size of a mapping is at least what it takes on disk; only a privileged process could read more about it. */
function addMappedFiles(pid: number, files: Map<string, number>): void {
  const maps = readIfExists(`/proc/${pid}/maps`) || readIfExists(`${liveThreadPath(pid)}/maps`)
  if (!maps.includes(' (deleted)\n')) return
  for (const [, start, end, offset, device, inode, path = ''] of maps.matchAll(
    /^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) (\S+) (\d+) +(.*) \(deleted\)$/gm,
  )) {
    if (memoryMapping.test(path)) continue
    const key = `${device}:${inode}`
    const size = Number.parseInt(`${offset}`, 16) + Number.parseInt(`${end}`, 16) - Number.parseInt(`${start}`, 16)
    files.set(key, Math.max(files.get(key) ?? 0, size))
  }
}

/** As in /proc/<pid>/maps. */
function deviceOf({ dev }: Stats): string {
  const major = (dev >>> 8) & 0xfff
  const minor = (dev & 0xff) | ((dev >>> 12) & 0xfff00)
  return [major, minor].map(part => part.toString(16).padStart(2, '0')).join(':')
}

function isInMemory(path: string): boolean {
  try {
    return memoryFileSystems.has(statfsSync(path).type)
  } catch {
    return false
  }
}

const filesInTransit = (path: string): number => Number(/^scm_fds:\s*(\d+)$/m.exec(readIfExists(path))?.[1] ?? 0)

/** Undefined if it may not be read, empty if the process has ended. */
function list(directory: string): string[] | undefined {
  try {
    return readdirSync(directory)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? undefined : []
  }
}

function statIfExists(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

function readIfExists(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
