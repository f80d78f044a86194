import { type Backoff, jitteredDelayMs } from '../util/backoff.ts'

/**
 * The state of a list+watch. `resourceVersion` is the version up to which everything was delivered; undefined means that
 * the next step is a list. `failures` counts consecutive failures, `expirations` the 410s since a watch last delivered an event or lasted.
 */
export type ListWatchState = { readonly resourceVersion: string | undefined; readonly failures: number; readonly expirations: number }

/** What just happened. Durations are measured by the caller with a monotonic clock. */
export type ListWatchInput =
  | { kind: 'listed'; resourceVersion: string }
  | { kind: 'list-failed'; error: ListWatchError }
  /** An event or bookmark of the running watch was delivered. */
  | { kind: 'advanced'; resourceVersion: string }
  /** The server ended the watch normally, or our own idle timeout did. */
  | { kind: 'watch-ended'; durationMs: number; events: number }
  | { kind: 'watch-failed'; error: ListWatchError; events: number }

export type ListWatchError =
  /** 410, as HTTP code or inside the stream: the version is too old to resume from. */
  | { kind: 'expired' }
  | { kind: 'rejected'; retryAfterMs: number | undefined }
  /** Broken or silent: the version is still valid. */
  | { kind: 'broken' }
  /** The data is not an event: a resumed watch may receive the same data again. */
  | { kind: 'malformed' }

/** What to do after `delayMs`: a list, or a watch from `state.resourceVersion`. */
export type ListWatchDecision = { state: ListWatchState; action: 'list' | 'watch'; delayMs: number }

export const initialListWatchState: ListWatchState = { resourceVersion: undefined, failures: 0, expirations: 0 }

/** A shorter watch without an event counts as a failure: otherwise a broken server would be polled in a tight loop. */
const shortWatchMs = 1_000

/** After this many rejected or malformed watches in a row the version itself is suspect (a restored server has lower ones): list again. */
const suspectAfterFailures = 3

/**
 * Decides the next step of a list+watch (invariant 6: no event is missed, and it never stops silently). There is always a
 * next step: only the caller's signal ends it. `random` is in [0, 1).
 */
export function decideListWatch(state: ListWatchState, input: ListWatchInput, backoff: Backoff, random: number): ListWatchDecision {
  switch (input.kind) {
    case 'listed':
      // A successful list does not reset the failures: a server may answer every list and reject every watch.
      return step({ ...state, resourceVersion: input.resourceVersion }, 0)
    case 'advanced':
      return step({ resourceVersion: input.resourceVersion, failures: 0, expirations: 0 }, 0)
    case 'list-failed': {
      const next = { ...state, resourceVersion: undefined, failures: state.failures + 1 }
      const retryAfterMs = input.error.kind === 'rejected' ? (input.error.retryAfterMs ?? 0) : 0
      return step(next, Math.max(retryAfterMs, jitteredDelayMs(next.failures, backoff, random)))
    }
    case 'watch-ended': {
      if (input.events > 0 || input.durationMs >= shortWatchMs) return step({ ...state, failures: 0, expirations: 0 }, 0)
      const next = { ...state, failures: state.failures + 1 }
      return step(next, jitteredDelayMs(next.failures, backoff, random))
    }
    case 'watch-failed': {
      const failures = (input.events > 0 ? 0 : state.failures) + 1
      const expirations = input.events > 0 ? 0 : state.expirations
      if (input.error.kind === 'expired') {
        // The first 410 is expected (the watch was interrupted for too long) and shows that the server responds, so an outage before it does
        // not count: list soon, but not all clients at the same instant.
        if (expirations === 0) {
          return step({ resourceVersion: undefined, failures: 1, expirations: 1 }, random * Math.min(100, backoff.minMs))
        }
        return step({ resourceVersion: undefined, failures, expirations: expirations + 1 }, jitteredDelayMs(failures, backoff, random))
      }
      const retryAfterMs = input.error.kind === 'rejected' ? (input.error.retryAfterMs ?? 0) : 0
      const isSuspect = input.error.kind !== 'broken' && failures >= suspectAfterFailures
      return step(
        { resourceVersion: isSuspect ? undefined : state.resourceVersion, failures, expirations },
        Math.max(retryAfterMs, jitteredDelayMs(failures, backoff, random)),
      )
    }
  }
}

function step(state: ListWatchState, delayMs: number): ListWatchDecision {
  return { state, action: state.resourceVersion === undefined ? 'list' : 'watch', delayMs }
}
