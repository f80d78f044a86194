import type { ShardOptions } from '../../src/kubernetes/controller/index.ts'

/** Settings of a replica, as JSON in argv[2]. Times in milliseconds. */
export type ReplicaSettings = {
  kubeconfig: string
  /** Unique among all replicas of a bench. */
  member: string
  /** Undefined: one replica that works on everything. */
  shards: ShardOptions | undefined
  /** CPU that each reconcile burns. */
  cpuMs: number
  maxConcurrent: number
  /** Reconciles every key again after this time; undefined: only after a change. */
  intervalMs: number | undefined
  /** Whether the beginning and the end of each reconcile are reported. */
  reports: boolean
  /** Whether the replica caches what the roots own. */
  ownsChildren: boolean
}

/** `atMs` is CLOCK_MONOTONIC, the same for all processes of a machine. */
export type FromReplica =
  | { type: 'started' }
  | { type: 'begin'; key: string; fence: number; bucket: number; atMs: number }
  | { type: 'end'; key: string; atMs: number; wrote: boolean }
  | { type: 'measured'; rssMb: number; privateMb: number; heapMb: number; objects: number; reconciles: number; cpuSeconds: number }

export type ToReplica = { type: 'measure' } | { type: 'stop' }

export { monotonicMs } from '../../test/support/managed/monotonic-ms.ts'
