import type { EventRecorder, Log, Manager } from '../../kubernetes/controller/index.ts'
import type { Caches } from './caches.ts'
import type { DispatchMetrics } from './metrics.ts'
import type { PoolDriver } from './pool/index.ts'
import type { RunQueueOptions } from './queue/index.ts'
import type { RunWrites } from './run-writes.ts'

/** External dependencies: the manager, pool drivers, clocks and the random source. */
export type DispatcherDependencies = {
  readonly manager: Manager
  /** By pool mode. */
  readonly poolDrivers: { readonly Process: PoolDriver; readonly Pod?: PoolDriver }
  readonly leaseDurationMs: number
  /** Fair-share half-life, and the limit for all pools together. */
  readonly queue: RunQueueOptions
  readonly log: Log
  /** Wall clock in milliseconds, for timestamps and durations that people read. */
  readonly nowMs: () => number
  /** Monotonic clock in milliseconds, for Leases (invariant 2). */
  readonly monotonicMs: () => number
  readonly random: () => number
}

/** Shared by the components of dispatch: placement, pools, failure detection, garbage collection. */
export type DispatchContext = DispatcherDependencies & {
  readonly caches: Caches
  readonly events: EventRecorder
  readonly writes: RunWrites
  readonly metrics: DispatchMetrics
  /** Requests another pass of the dispatch loop. */
  readonly wake: () => void
}
