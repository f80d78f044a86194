import { RepeatedWarnings } from '../repeated-warnings.ts'
import type { MemberAction } from './member-core.ts'

/** What a member asks the API server for. */
export type RingRequest = 'list' | 'watch' | (MemberAction & { kind: 'write' })['purpose']

/** Why requests for a ring fail, by what was asked: a list that succeeds proves nothing about writes. Knows also which failures to log, also if some succeed in between. */
export class RequestFailures {
  readonly #errors = new Map<RingRequest, Error>()
  readonly #warnings: RepeatedWarnings

  constructor(nowMs: () => number) {
    this.#warnings = new RepeatedWarnings(nowMs)
  }

  /** Returns what to log: how often it failed since the last time that it was logged; undefined: nothing. */
  failed(request: RingRequest, error: Error): { failures: number } | undefined {
    this.#errors.set(request, error)
    const skipped = this.#warnings.next(request)
    return skipped === undefined ? undefined : { failures: skipped + 1 }
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
