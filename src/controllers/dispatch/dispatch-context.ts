import type { EventRecorder, Log, Manager } from '../../kubernetes/controller/index.ts'
import type { Caches } from './caches.ts'
import type { DispatchMetrics } from './metrics.ts'
import type { PoolDriver } from './pool/index.ts'
import type { RunQueueOptions } from './queue/index.ts'
import type { RunWrites } from './run-writes.ts'

/** What comes from outside: the process, its clocks and its dice. */
export type DispatcherDependencies = {
  readonly manager: Manager
  /** By mode of the pool. */
  readonly poolDrivers: { readonly Process: PoolDriver; readonly Pod?: PoolDriver }
  readonly leaseDurationMs: number
  /** Fair share and the limit over all pools. */
  readonly queue: RunQueueOptions
  readonly log: Log
  /** Wall clock in milliseconds, for what people read. */
  readonly nowMs: () => number
  /** Monotonic clock in milliseconds, for Leases (invariant 2). */
  readonly monotonicMs: () => number
  readonly random: () => number
}

/** What the shells of dispatch (placing, pools, burying, tidying) have in common. */
export type DispatchContext = DispatcherDependencies & {
  readonly caches: Caches
  readonly events: EventRecorder
  readonly writes: RunWrites
  readonly metrics: DispatchMetrics
  /** Asks for another pass that places Runs and sizes pools. */
  readonly wake: () => void
}
