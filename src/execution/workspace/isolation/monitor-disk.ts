import { statfsSync } from 'node:fs'
import {
  decideDisk,
  type FileSystemUse,
  type Interruption,
  isMeasurementDue,
  type LastMeasurement,
  maxMeasuredBytes,
} from './decide-disk.ts'
import { type DiskUsage, measureDisk } from './disk-usage.ts'
import type { ExceededLimit } from './resource-limits.ts'

export type DiskMonitorOptions = {
  root: string
  limitBytes: number
  findProcesses(): readonly number[]
  /** At level Sandbox, instead: these must be readable. At level Process, programs may use sudo. */
  findSandboxed: (() => readonly number[]) | undefined
  onExceeded(exceeded: ExceededLimit): void
}

const pollMs = 250

/** Measures what a Run has on disk until stopped. */
export function monitorDisk({ root, limitBytes, findProcesses, findSandboxed, onExceeded }: DiskMonitorOptions) {
  let peakBytes = 0
  let isStopped = false
  let last: LastMeasurement | undefined
  let interruption: Interruption | undefined
  let timer: NodeJS.Timeout | undefined

  const measure = async (): Promise<DiskUsage> => {
    try {
      const maxBytes = maxMeasuredBytes(limitBytes, interruption)
      const processes = (findSandboxed ?? findProcesses)()
      const { processProblem, ...usage } = await measureDisk({ root, processes, maxBytes, isStopped: () => isStopped })
      return findSandboxed && processProblem !== undefined ? { ...usage, processProblem } : usage
    } catch (error) {
      return { bytes: 0, problem: (error as Error).message }
    }
  }
  const poll = async (): Promise<void> => {
    const fileSystem = fileSystemUse(root)
    const startedMs = performance.now()
    if (!last || isMeasurementDue(last, fileSystem, limitBytes, startedMs)) {
      const usage = await measure()
      if (isStopped) return
      const nowMs = performance.now()
      peakBytes = Math.max(peakBytes, usage.bytes)
      const { kind, ...reason } = decideDisk(usage, last, limitBytes, interruption, nowMs)
      if (kind !== 'continue') {
        onExceeded({ kind: 'Disk', used: usage.bytes, limit: limitBytes, ...reason, ...(kind === 'kill' && { mustKill: true }) })
        if (kind === 'kill') return stop()
        interruption = { atMs: nowMs, bytes: usage.bytes }
      }
      last = { ...usage, endedMs: nowMs, durationMs: nowMs - startedMs, fileSystem }
    }
    schedule()
  }
  const schedule = (): void => {
    if (!isStopped) timer = setTimeout(() => void poll(), pollMs).unref()
  }
  const stop = (): void => {
    isStopped = true
    clearTimeout(timer)
  }
  schedule()
  return { peakBytes: () => peakBytes, stop }
}

/** 0 where it is unknown: some file systems report no inodes, and the directory may be removed already. */
function fileSystemUse(path: string): FileSystemUse {
  try {
    const { blocks, bfree, bsize, files, ffree } = statfsSync(path)
    return { bytes: (blocks - bfree) * bsize, inodes: files - ffree }
  } catch {
    return { bytes: 0, inodes: 0 }
  }
}
