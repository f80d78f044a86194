/** How starting workers of one pool goes. */
export type StartState = {
  /** Started and not registered. */
  readonly starting: readonly { readonly name: string; readonly sinceMs: number }[]
  /** Starts that failed since the last worker that registered. */
  readonly failures: number
  /** No start before this. */
  readonly notBeforeMs: number
  /** Why the last one failed; empty when none did. */
  readonly lastError: string
}

/** A worker that was started has this long to register; later it counts as failed. */
export const registerWithinMs = 30_000

const firstBackoffMs = 1_000
const maxBackoffMs = 60_000

export const noStarts: StartState = { starting: [], failures: 0, notBeforeMs: 0, lastError: '' }

export function withStarted(state: StartState, name: string, nowMs: number): StartState {
  return { ...state, starting: [...state.starting, { name, sinceMs: nowMs }] }
}

/** A worker of the pool has registered: starting works (again). */
export function withRegistered(state: StartState, name: string): StartState {
  if (!state.starting.some(one => one.name === name) && state.failures === 0) return state
  return { ...noStarts, starting: state.starting.filter(one => one.name !== name) }
}

/** A worker did not come up. Unknown names change nothing: it had registered, or was given up before. */
export function withFailed(state: StartState, name: string, why: string, nowMs: number): StartState {
  if (!state.starting.some(one => one.name === name)) return state
  const failures = state.failures + 1
  return {
    starting: state.starting.filter(one => one.name !== name),
    failures,
    notBeforeMs: nowMs + Math.min(maxBackoffMs, firstBackoffMs * 2 ** Math.min(10, failures - 1)),
    lastError: why,
  }
}

/** Gives up workers that should have registered by now. */
export function withTimeouts(state: StartState, nowMs: number): StartState {
  let next = state
  for (const { name, sinceMs } of state.starting) {
    if (nowMs - sinceMs >= registerWithinMs) {
      next = withFailed(next, name, `worker ${name} did not register within ${registerWithinMs / 1_000} s`, nowMs)
    }
  }
  return next
}

/** When {@link withTimeouts} has something to do next; undefined when nothing is starting. */
export function nextTimeoutMs(state: StartState): number | undefined {
  return state.starting.length === 0 ? undefined : Math.min(...state.starting.map(({ sinceMs }) => sinceMs)) + registerWithinMs
}
