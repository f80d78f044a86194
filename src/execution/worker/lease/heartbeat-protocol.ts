import type { WorkerIdentity } from '../supervisor/index.ts'

/** What the heartbeat's thread is given. */
export type HeartbeatData = {
  /** Of the Lease itself. */
  leaseUrl: string
  leaseUid: string
  token: string
  caCertificate: string | undefined
  worker: WorkerIdentity
  renewMs: number
  /** A main thread that has not moved for so long does not hold its Lease any more. */
  stuckMs: number
  /** Two numbers of 64 bits, see {@link sharedIndex}. */
  shared: SharedArrayBuffer
}

/** Whole milliseconds by `bootMs`: before the last renewal that succeeded was sent; when the main thread's event loop last turned. */
export const sharedIndex = { renewedAtMs: 0, aliveAtMs: 1 } as const

export type ToHeartbeat = { kind: 'stop' } | { kind: 'token'; token: string } | { kind: 'supervisor'; path: string }
export type FromHeartbeat = { kind: 'renewed' } | { kind: 'lost' } | { kind: 'error'; message: string }
