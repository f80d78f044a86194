/** Limits that a queued Run waits for: it starts once others have ended. */
const limitReasons = ['TenantLimit', 'ConcurrencyLimit', 'PoolLimit', 'GlobalLimit'] as const

/** Reasons for which a queued Run cannot start until its pool, its workers or its Stack change. */
export const blockedReasons = ['PoolNotFound', 'NoWorkerJoined', 'NoMatchingWorker', 'WorkerStartFailed'] as const
export type BlockedReason = (typeof blockedReasons)[number]

/** Why a Run is pending: its `status.reason`, described in docs/queue.md. A controller of another version may report others. */
export const pendingReasons = ['NoWorkerAvailable', ...limitReasons, ...blockedReasons, 'PolicyViolation'] as const
export type PendingReasonCode = (typeof pendingReasons)[number]

/** Those that are also the reason of the Stack's condition Reconciling: more than that a worker is awaited, and nothing that stalls the Stack. */
export const reconcilingPendingReasons = [...limitReasons, ...blockedReasons] as const
export type ReconcilingPendingReason = (typeof reconcilingPendingReasons)[number]

export const isBlockedReason = (reason: string | undefined): reason is BlockedReason =>
  (blockedReasons as readonly (string | undefined)[]).includes(reason)

export const isReconcilingPendingReason = (reason: string | undefined): reason is ReconcilingPendingReason =>
  (reconcilingPendingReasons as readonly (string | undefined)[]).includes(reason)
