import type { HistoryLimits } from './table.ts'

export type StoreOptions = {
  dataDir: string
  /** 0 to 63, part of every revision. Default 0. */
  partition?: number
  /** OFF relies on the operating system instead of fsync: for tests and benchmarks. Default FULL. */
  synchronous?: 'FULL' | 'OFF'
  history?: HistoryLimits
  /** Writes are rejected with 429 while more than this many bytes wait for the disk. Default 64 MiB. */
  maxQueuedBytes?: number
  /** How old a deferred write becomes before it is on disk. Default 10,000. */
  maxDeferredMs?: number
  nowMs?: () => number
  log?: (message: string) => void
}

export type StoreStats = {
  objects: number
  bytes: number
  historyBytes: number
  writes: number
  commits: number
  failedWrites: number
  queued: number
  queuedBytes: number
  lastCommitMs: number
  /** Objects whose newest version is not on disk yet. */
  deferredWrites: number
}
