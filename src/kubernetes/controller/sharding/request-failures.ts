import type { MemberAction } from './member-core.ts'

/** What a member asks the API server for. */
export type RingRequest = 'list' | 'watch' | (MemberAction & { kind: 'write' })['purpose']

/** Why requests for a ring fail, by what was asked: a list that succeeds proves nothing about writes. */
export class RequestFailures {
  readonly #errors = new Map<RingRequest, Error>()

  failed(request: RingRequest, error: Error): void {
    this.#errors.set(request, error)
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
