import { readFileSync } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { findRunProcesses, type RunCgroup } from '../process/index.ts'
import { type ExceededLimit, findExceededLimit, type MeasuredUsage, type RunLimits } from './resource-limits.ts'

export type UsagePeaks = { peakMemoryBytes: number; peakPids: number; peakDiskBytes: number }

export type MonitorOptions = {
  runUid: string
  /** Knows the processes of the Run without a search. */
  cgroup: RunCgroup | undefined
  limits: RunLimits
  byKernel: ReadonlySet<'memory' | 'pids'>
  diskRoot: string
  /** Called once. */
  onExceeded(exceeded: ExceededLimit): void
}

/** How often a limit on memory or processes is looked after, and how often only the peak is noted. */
const limitEveryMs = 100
const peakEveryMs = 500
/** How often the disk is counted, at least; a count that takes long waits this many times longer before the next. */
const diskEveryMs = 1_000
const diskRest = 20
/** Without a cgroup a look reads the environment of every process: not more than this part of the time is spent on it. */
const lookRest = 20
const pageBytes = 4_096

/**
 * Measures the processes of a Run and its directory until stopped. Memory is what is private to each process (resident without what
 * is shared with files or others), summed up: shared libraries are not counted once per process.
 */
export function monitorUsage(options: MonitorOptions): { peaks(): UsagePeaks; stop(): void } {
  const { runUid, cgroup, limits, byKernel, diskRoot, onExceeded } = options
  const peaks: UsagePeaks = { peakMemoryBytes: 0, peakPids: 0, peakDiskBytes: 0 }
  const measured: MeasuredUsage = { memoryBytes: 0, pids: 0, diskBytes: 0 }
  const isLimited = (limits.memoryBytes !== undefined && !byKernel.has('memory')) || (limits.pids !== undefined && !byKernel.has('pids'))
  let timer: NodeJS.Timeout | undefined
  let diskTimer: NodeJS.Timeout | undefined
  let isOver = false

  const judge = (): void => {
    const exceeded = isOver ? undefined : findExceededLimit(measured, limits, byKernel)
    if (!exceeded) return
    stop()
    onExceeded(exceeded)
  }
  const look = (): void => {
    const startedMs = performance.now()
    const pids = cgroup ? cgroup.processes() : findRunProcesses(runUid)
    measured.pids = pids.length
    measured.memoryBytes = pids.reduce((sum, pid) => sum + privateBytes(pid), 0)
    peaks.peakPids = Math.max(peaks.peakPids, measured.pids)
    peaks.peakMemoryBytes = Math.max(peaks.peakMemoryBytes, measured.memoryBytes)
    judge()
    if (!isOver) timer = after(look, Math.max(isLimited ? limitEveryMs : peakEveryMs, lookRest * (performance.now() - startedMs)))
  }
  const count = async (): Promise<void> => {
    const startedMs = performance.now()
    measured.diskBytes = await diskUsage(diskRoot)
    peaks.peakDiskBytes = Math.max(peaks.peakDiskBytes, measured.diskBytes)
    judge()
    if (!isOver) diskTimer = after(() => void count(), Math.max(diskEveryMs, diskRest * (performance.now() - startedMs)))
  }
  const stop = (): void => {
    isOver = true
    clearTimeout(timer)
    clearTimeout(diskTimer)
  }

  if (process.platform === 'linux') timer = after(look, isLimited ? limitEveryMs : peakEveryMs)
  if (limits.diskBytes !== undefined) diskTimer = after(() => void count(), diskEveryMs)
  return { peaks: () => ({ ...peaks }), stop }
}

function after(work: () => void, ms: number): NodeJS.Timeout {
  return setTimeout(work, ms).unref()
}

/** Resident pages that are neither of a file nor shared (proc(5): statm). 0 for a process that is gone. */
function privateBytes(pid: number): number {
  try {
    const [, resident = 0, shared = 0] = readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ', 3).map(Number)
    return Math.max(0, resident - shared) * pageBytes
  } catch {
    return 0
  }
}

/** What the directory takes on its disk, links not followed. What cannot be read, or goes away meanwhile, is not counted. */
async function diskUsage(directory: string): Promise<number> {
  let bytes = 0
  const pending = [directory]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    for (const entry of await readdir(path, { withFileTypes: true }).catch(() => [])) {
      const child = join(path, entry.name)
      if (entry.isDirectory()) pending.push(child)
      else bytes += ((await lstat(child).catch(() => undefined))?.blocks ?? 0) * 512
    }
  }
  return bytes
}
