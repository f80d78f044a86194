import type { WorkerIdentity } from '../supervisor/index.ts'

/** The start data of the heartbeat's thread. */
export type HeartbeatData = {
  /** URL of the Lease. */
  leaseUrl: string
  /** Renewals use this Unix socket instead of the host and port of `leaseUrl`. */
  socketPath: string | undefined
  leaseUid: string
  token: string
  caCertificate: string | undefined
  worker: WorkerIdentity
  renewMs: number
  /** The Lease is no longer renewed when the main thread has been blocked for this long. */
  stuckMs: number
  /** Two 64-bit integers, see {@link sharedClockSlots}. */
  shared: SharedArrayBuffer
}

/** Milliseconds by `bootMs`: before the last successful renewal was sent; when the main thread's event loop last ran. */
export const sharedClockSlots = { renewedAtMs: 0, aliveAtMs: 1 } as const

export type ToHeartbeat = { kind: 'stop' } | { kind: 'token'; token: string } | { kind: 'supervisor'; path: string }
export type FromHeartbeat = { kind: 'renewed' } | { kind: 'lost' } | { kind: 'error'; message: string; isRejected: boolean }
