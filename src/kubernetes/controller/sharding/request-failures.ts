import type { MemberAction } from './member-core.ts'

/** What a member asks the API server for. */
export type RingRequest = 'list' | 'watch' | (MemberAction & { kind: 'write' })['purpose']

/** A request that fails all the time is logged once in this time. */
const logIntervalMs = 60_000

/**
 * Why requests for a ring fail, by what was asked: a list that succeeds proves nothing about writes. Knows also which failures to log: the first of
 * a request, and then one a minute, also if some succeed in between.
 */
export class RequestFailures {
  readonly #errors = new Map<RingRequest, Error>()
  readonly #logged = new Map<RingRequest, { atMs: number; failures: number }>()

  /** Returns what to log: how often it failed since the last time that it was logged; undefined: nothing. */
  failed(request: RingRequest, error: Error, nowMs: number): { failures: number } | undefined {
    this.#errors.set(request, error)
    const logged = this.#logged.get(request)
    const failures = (logged?.failures ?? 0) + 1
    if (logged && nowMs < logged.atMs + logIntervalMs) {
      logged.failures = failures
      return undefined
    }
    this.#logged.set(request, { atMs: nowMs, failures: 0 })
    return { failures }
  }

  succeeded(request: RingRequest): void {
    this.#errors.delete(request)
  }

  /** The error of the first of these that failed when it was asked for last; undefined if none did. */
  find(...requests: readonly RingRequest[]): Error | undefined {
    for (const request of requests) {
      const error = this.#errors.get(request)
      if (error) return error
    }
    return undefined
  }
}
