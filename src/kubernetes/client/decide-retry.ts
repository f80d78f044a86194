import { jitteredDelayMs } from '../util/backoff.ts'

/** What went wrong with one attempt of a request. */
export type AttemptFailure =
  /** An answer: `retryAfterMs` is what its Retry-After header asked for. */
  | { kind: 'answer'; status: number; retryAfterMs: number | undefined }
  /** The connection broke after the request was sent: the server may or may not have done it. */
  | { kind: 'reset' }
  | { kind: 'other' }

export type RetryVerdict = { kind: 'retry'; delayMs: number } | { kind: 'give-up' }

const maxRetries = 5
const maxRetryAfterMs = 30_000
const resetBackoff = { minMs: 50, maxMs: 2_000 }

/**
 * Decides whether a request is sent again. 429 and 503 are obeyed when they say how long to wait, for any method, since
 * the server did nothing; a broken connection only for requests that may be done twice. `retries` were made before.
 */
export function decideRetry(failure: AttemptFailure, request: { idempotent: boolean; retries: number }, random: number): RetryVerdict {
  if (request.retries >= maxRetries) return { kind: 'give-up' }
  switch (failure.kind) {
    case 'answer': {
      const { status, retryAfterMs } = failure
      if ((status !== 429 && status !== 503) || retryAfterMs === undefined || retryAfterMs > maxRetryAfterMs) return { kind: 'give-up' }
      // Up to a tenth more, so that everyone who was told "1 second" does not come back at the same instant.
      return { kind: 'retry', delayMs: retryAfterMs * (1 + random / 10) }
    }
    case 'reset':
      if (!request.idempotent) return { kind: 'give-up' }
      return { kind: 'retry', delayMs: jitteredDelayMs(request.retries, resetBackoff, random) }
    case 'other':
      return { kind: 'give-up' }
  }
}

/** Reads a Retry-After header (seconds, or an HTTP date compared with `nowMs` of the wall clock) as milliseconds. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined
  if (/^\d+$/.test(value.trim())) return Number(value) * 1_000
  const dateMs = Date.parse(value)
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs)
}
