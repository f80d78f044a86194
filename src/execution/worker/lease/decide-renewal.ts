/** What has happened to the renewal of a Lease. All times are by `bootMs`. */
export type RenewalEvent =
  /** The registration counts as the first renewal, and was a while ago. */
  | { readonly kind: 'registered'; readonly sentAtMs: number }
  /** The wait has ended. `aliveAtMs`: when the main thread's event loop last ran. */
  | { readonly kind: 'due'; readonly aliveAtMs: number }
  | { readonly kind: 'answered'; readonly sentAtMs: number; readonly status: number; readonly text: string }
  | { readonly kind: 'failed'; readonly message: string }

export type RenewalStep = {
  /** The Lease is renewed, counted from this time: before the request was sent (invariant 2). */
  readonly renewedAtMs?: number
  /** Why it was not. */
  readonly error?: string
  /** The API server rejected the credential. */
  readonly isRejected?: boolean
  readonly next:
    | { readonly kind: 'send'; readonly sentAtMs: number }
    | { readonly kind: 'wait'; readonly ms: number }
    /** The Lease was deleted or replaced: the worker was declared lost, and renews nothing any more. */
    | { readonly kind: 'lost' }
}

/** Milliseconds. No renewal is sent while the main thread has been blocked for `stuckMs`. */
export type RenewalTimings = { readonly renewMs: number; readonly stuckMs: number }

/** Decides the next step of the thread that renews a worker's Lease. A failed renewal is sent again after a quarter of the interval. */
export function decideRenewal(event: RenewalEvent, nowMs: number, { renewMs, stuckMs }: RenewalTimings): RenewalStep {
  const wait = (ms: number) => ({ kind: 'wait', ms: Math.max(0, ms) }) as const
  switch (event.kind) {
    case 'registered':
      return { next: wait(renewMs - (nowMs - event.sentAtMs)) }
    case 'due':
      // A stuck worker lets its Lease expire, so that another one takes over; the supervisor stops the engine.
      return { next: nowMs - event.aliveAtMs > stuckMs ? wait(renewMs) : { kind: 'send', sentAtMs: nowMs } }
    case 'answered': {
      const { status, text, sentAtMs } = event
      if (status === 404 || status === 409) return { next: { kind: 'lost' } }
      if (status !== 200) {
        const isRejected = status === 401 || status === 403
        return {
          error: `failed to renew the Lease: ${status} ${text.slice(0, 300)}`,
          ...(isRejected && { isRejected }),
          next: wait(renewMs / 4),
        }
      }
      return { renewedAtMs: sentAtMs, next: wait(renewMs - (nowMs - sentAtMs)) }
    }
    case 'failed':
      return { error: event.message, next: wait(renewMs / 4) }
  }
}
