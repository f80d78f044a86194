import { readFileSync } from 'node:fs'
import { liveThreadPath } from '../process/index.ts'
import { monitorDisk } from './monitor-disk.ts'
import { type ExceededLimit, findExceededLimit, type MeasuredUsage, type RunLimits } from './resource-limits.ts'

export type UsagePeaks = { peakMemoryBytes: number; peakPids: number; peakDiskBytes: number }

export type MonitorOptions = {
  /** The processes of the Run. */
  findProcesses(): readonly number[]
  limits: RunLimits
  /** Limits that the kernel enforces. */
  byKernel: ReadonlySet<'memory' | 'pids'>
  diskRoot: string
  /** At level Sandbox: those in the sandbox. */
  findSandboxed: (() => readonly number[]) | undefined
  /** Called once for each kind, and for the disk again with `mustKill`. */
  onExceeded(exceeded: ExceededLimit): void
}

/** Sampling interval of processes with a limit on memory or pids, and without one (then only peaks are recorded). */
const limitIntervalMs = 100
const peakIntervalMs = 500
/**
 * A measurement that takes long is followed by a pause of this many times its duration, so that measuring uses at most 5 % of the time.
 * Without a cgroup every sample reads a file of every process.
 */
const pauseFactor = 20

/**
 * Measures the processes of a Run and its directory until stopped. Memory is the sum of the memory of the processes without file-backed
 * pages, so that shared libraries are not counted once per process.
 */
export function monitorUsage(options: MonitorOptions): { peaks(): UsagePeaks; stop(): void } {
  const { findProcesses, limits, byKernel, diskRoot, findSandboxed, onExceeded } = options
  const peaks = { peakMemoryBytes: 0, peakPids: 0 }
  const usage: MeasuredUsage = { memoryBytes: 0, pids: 0 }
  const isLimited = (limits.memoryBytes !== undefined && !byKernel.has('memory')) || (limits.pids !== undefined && !byKernel.has('pids'))
  let timer: NodeJS.Timeout | undefined
  let isStopped = false

  const checkLimits = (): void => {
    const exceeded = isStopped ? undefined : findExceededLimit(usage, limits, byKernel)
    if (!exceeded) return
    stop()
    onExceeded(exceeded)
  }
  const sampleProcesses = (): void => {
    const startedMs = performance.now()
    const pids = findProcesses()
    usage.pids = pids.length
    usage.memoryBytes = pids.reduce((sum, pid) => sum + privateBytes(pid), 0)
    peaks.peakPids = Math.max(peaks.peakPids, usage.pids)
    peaks.peakMemoryBytes = Math.max(peaks.peakMemoryBytes, usage.memoryBytes)
    checkLimits()
    const pauseMs = Math.max(isLimited ? limitIntervalMs : peakIntervalMs, pauseFactor * (performance.now() - startedMs))
    if (!isStopped) timer = after(sampleProcesses, pauseMs)
  }
  const stop = (): void => {
    isStopped = true
    clearTimeout(timer)
  }

  if (process.platform === 'linux') timer = after(sampleProcesses, isLimited ? limitIntervalMs : peakIntervalMs)
  const disk =
    limits.diskBytes === undefined
      ? undefined
      : monitorDisk({ root: diskRoot, limitBytes: limits.diskBytes, findProcesses, findSandboxed, onExceeded })
  return {
    peaks: () => ({ ...peaks, peakDiskBytes: disk?.peakBytes() ?? 0 }),
    stop: () => {
      stop()
      disk?.stop()
    },
  }
}

function after(work: () => void, ms: number): NodeJS.Timeout {
  return setTimeout(work, ms).unref()
}

/**
 * Resident memory that is not file-backed (proc(5): status), with the shared memory that the process has mapped. 0 for a process that has
 * ended.
 */
function privateBytes(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    return residentBytes(/^State:\tZ/m.test(status) ? readFileSync(`${liveThreadPath(pid)}/status`, 'latin1') : status)
  } catch {
    return 0
  }
}

const residentBytes = (status: string): number =>
  1_024 * ['RssAnon', 'RssShmem'].reduce((sum, name) => sum + Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0), 0)
