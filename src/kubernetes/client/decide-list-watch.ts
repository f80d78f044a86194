import { type Backoff, jitteredDelayMs } from '../util/backoff.ts'

/**
 * Where a list+watch stands. `resourceVersion` is the version up to which everything was handed on; undefined means the
 * next step is a list. `failures` counts what went wrong since the last sign of health.
 */
export type ListWatchState = { readonly resourceVersion: string | undefined; readonly failures: number }

/** What just happened. Durations are the shell's, measured by a monotonic clock. */
export type ListWatchInput =
  | { kind: 'listed'; resourceVersion: string }
  | { kind: 'list-failed'; error: ListWatchError }
  /** An event or bookmark of the running watch was handed on. */
  | { kind: 'advanced'; resourceVersion: string }
  /** The server ended the watch in good order, or our own bound on silence did. */
  | { kind: 'watch-ended'; durationMs: number; events: number }
  | { kind: 'watch-failed'; error: ListWatchError; events: number }

export type ListWatchError =
  /** 410, as HTTP code or inside the stream: the version is too old to resume from. */
  | { kind: 'gone' }
  | { kind: 'refused'; retryAfterMs: number | undefined }
  /** Cut or silent: the version is still good. */
  | { kind: 'broken' }
  /** What came is not an event: resuming may well bring the same again. */
  | { kind: 'garbage' }

/** What to do next, after waiting: a list, or a watch from `state.resourceVersion`. */
export type ListWatchStep = { state: ListWatchState; action: 'list' | 'watch'; delayMs: number }

export const initialListWatchState: ListWatchState = { resourceVersion: undefined, failures: 0 }

/** A watch that ended sooner without a single event counts as a failure: else a broken server would be asked in a tight loop. */
const shortWatchMs = 1_000

/** After so many refused or unreadable watches in a row the version itself is doubted (a restored server has lower ones): list again. */
const doubtAfterFailures = 3

/**
 * Decides how a list+watch goes on (invariant 6: nothing missed, nothing silently stopped). There is always a next step:
 * only the caller's signal ends it. `random` is in [0, 1).
 */
export function decideListWatch(state: ListWatchState, input: ListWatchInput, backoff: Backoff, random: number): ListWatchStep {
  switch (input.kind) {
    case 'listed':
      // A list alone is no proof of health: a server may answer every list and refuse every watch.
      return step({ ...state, resourceVersion: input.resourceVersion }, 0)
    case 'advanced':
      return step({ resourceVersion: input.resourceVersion, failures: 0 }, 0)
    case 'list-failed': {
      const next = { resourceVersion: undefined, failures: state.failures + 1 }
      const asked = input.error.kind === 'refused' ? (input.error.retryAfterMs ?? 0) : 0
      return step(next, Math.max(asked, jitteredDelayMs(next.failures, backoff, random)))
    }
    case 'watch-ended': {
      if (input.events > 0 || input.durationMs >= shortWatchMs) return step({ ...state, failures: 0 }, 0)
      const next = { ...state, failures: state.failures + 1 }
      return step(next, jitteredDelayMs(next.failures, backoff, random))
    }
    case 'watch-failed': {
      const failures = (input.events > 0 ? 0 : state.failures) + 1
      // The first 410 is ordinary (we were away too long): list at once, but not all clients in the same instant.
      if (input.error.kind === 'gone') {
        const delayMs = failures === 1 ? random * Math.min(100, backoff.minMs) : jitteredDelayMs(failures, backoff, random)
        return step({ resourceVersion: undefined, failures }, delayMs)
      }
      const asked = input.error.kind === 'refused' ? (input.error.retryAfterMs ?? 0) : 0
      const isDoubtful = input.error.kind !== 'broken' && failures >= doubtAfterFailures
      return step(
        { resourceVersion: isDoubtful ? undefined : state.resourceVersion, failures },
        Math.max(asked, jitteredDelayMs(failures, backoff, random)),
      )
    }
  }
}

function step(state: ListWatchState, delayMs: number): ListWatchStep {
  return { state, action: state.resourceVersion === undefined ? 'list' : 'watch', delayMs }
}
