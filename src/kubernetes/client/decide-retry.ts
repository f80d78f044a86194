import { jitteredDelayMs } from '../util/backoff.ts'

/** Why one attempt of a request failed. */
export type AttemptFailure =
  /** An HTTP response: `retryAfterMs` is the value of its Retry-After header. */
  | { kind: 'response'; status: number; retryAfterMs: number | undefined }
  /** The connection broke after the request was sent: the server may or may not have processed it. */
  | { kind: 'reset' }
  | { kind: 'other' }

export type RetryDecision = { kind: 'retry'; delayMs: number } | { kind: 'give-up' }

const maxRetries = 5
const maxRetryAfterMs = 30_000
const resetBackoff = { minMs: 50, maxMs: 2_000 }

/**
 * Decides whether a request is retried. 429 and 503 with a Retry-After are retried for any method, since the server did
 * not process the request; a broken connection only for idempotent requests. `retries` is how many were made before.
 */
export function decideRetry(failure: AttemptFailure, request: { idempotent: boolean; retries: number }, random: number): RetryDecision {
  if (request.retries >= maxRetries) return { kind: 'give-up' }
  switch (failure.kind) {
    case 'response': {
      const { status, retryAfterMs } = failure
      if ((status !== 429 && status !== 503) || retryAfterMs === undefined || retryAfterMs > maxRetryAfterMs) return { kind: 'give-up' }
      // Up to a tenth more, so that clients with the same Retry-After do not retry at the same instant.
      return { kind: 'retry', delayMs: retryAfterMs * (1 + random / 10) }
    }
    case 'reset':
      if (!request.idempotent) return { kind: 'give-up' }
      return { kind: 'retry', delayMs: jitteredDelayMs(request.retries, resetBackoff, random) }
    case 'other':
      return { kind: 'give-up' }
  }
}

/** Parses a Retry-After header (seconds, or an HTTP date compared with `nowMs` of the wall clock) as milliseconds. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined
  if (/^\d+$/.test(value.trim())) return Number(value) * 1_000
  const dateMs = Date.parse(value)
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs)
}
