import { badRequest } from '../../object/index.ts'
import { isTooFarAhead, maxLeadMs, nextRevision, readRevision } from '../../util/index.ts'
import type { Reservation } from './deferred-writes.ts'

/** How far ahead revisions are reserved, so that a burst of requests costs one commit. */
const reserveMs = 2_000

/** Not a resource: the row that remembers the clock. */
export const clockName = ''

/**
 * The part of a hybrid logical clock (Kulkarni et al., "Logical Physical Clocks", 2014) that survives a crash: a server that has told a client "this is
 * everything up to revision R" never assigns a revision below R later, whatever its wall clock shows after a restart. So R is reserved on
 * disk before the answer.
 */
export class ClusterClock {
  #reserved = 0
  #wanted = 0
  #waiting: { readonly revision: number; readonly done: PromiseWithResolvers<void> }[] = []

  /** What the last process had reserved. */
  restore(revision: number): void {
    this.#reserved = this.#wanted = revision
  }

  /** Whether {@link takeReservations} returns something. */
  get isDue(): boolean {
    return this.#wanted > this.#reserved
  }

  /**
   * Resolves when `revision` is reserved on disk; undefined if it is.
   * @throws {StatusError} BadRequest if it is more than 60 s ahead of `nowMs` ({@link isTooFarAhead}).
   */
  reserve(revision: number, nowMs: number): Promise<void> | undefined {
    const { atMs } = readRevision(revision)
    if (isTooFarAhead(revision, nowMs)) {
      const leadSeconds = Math.round((atMs - nowMs) / 1_000)
      throw badRequest(
        `resource version ${revision} is ${leadSeconds} s ahead of the clock of this server, at most ${maxLeadMs / 1_000} s are accepted: synchronize the clocks of all servers (NTP)`,
      )
    }
    const half = nextRevision(0, Math.max(atMs, nowMs) + reserveMs / 2, 0)
    if (half > this.#wanted) this.#wanted = nextRevision(0, Math.max(atMs, nowMs) + reserveMs, 0)
    if (revision <= this.#reserved) return undefined
    const done = Promise.withResolvers<void>()
    this.#waiting.push({ revision, done })
    return done.promise
  }

  /** What the next commit must write. */
  takeReservations(): Reservation[] {
    return this.isDue ? [[{ name: clockName }, this.#wanted]] : []
  }

  committed(reservations: readonly Reservation[]): void {
    for (const [{ name }, revision] of reservations) if (name === clockName) this.#reserved = revision
    const waiting = this.#waiting
    this.#waiting = waiting.filter(({ revision }) => revision > this.#reserved)
    for (const { revision, done } of waiting) if (revision <= this.#reserved) done.resolve()
  }

  failed(error: Error): void {
    const waiting = this.#waiting
    this.#waiting = []
    this.#wanted = this.#reserved
    for (const { done } of waiting) done.reject(error)
  }
}
