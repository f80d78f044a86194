/**
 * Why a worker does not come up; the reason of the pool's condition `Ready`.
 * `CreateFailed`: it could not even be made. `QuotaExceeded`: the cluster allows no more Pods. `ImagePullFailed`, `ContainerConfigError`,
 * `Unschedulable`: its Pod is there and does not run. `CredentialRejected`: it could not register. `CrashedOnStartup`: it ended before it
 * took a Run. `Evicted`: its node took it away. `RegistrationFailed`: nothing was heard of it in time.
 */
export type StartFailureReason =
  | 'CreateFailed'
  | 'QuotaExceeded'
  | 'ImagePullFailed'
  | 'ContainerConfigError'
  | 'Unschedulable'
  | 'CredentialRejected'
  | 'CrashedOnStartup'
  | 'Evicted'
  | 'RegistrationFailed'

export type StartFailure = { readonly reason: StartFailureReason; readonly message: string }

/** How starting workers of one pool goes. */
export type StartState = {
  /** Started and not registered. They count as workers, so that a slow start is not answered by another one. */
  readonly starting: readonly { readonly name: string; readonly sinceMs: number; readonly failure?: StartFailure }[]
  /** Registered just now, and had no Run yet: when one of these fails, the next one would fail too. */
  readonly unproven: readonly { readonly name: string; readonly sinceMs: number }[]
  /** Tries that failed since the last worker that proved itself. */
  readonly failures: number
  /** No start before this. */
  readonly notBeforeMs: number
  /** Why the last one failed; undefined when none did. */
  readonly lastFailure: StartFailure | undefined
}

/** A worker that was started has this long to register unless its pool says otherwise; later it counts as failed. */
export const registerWithinMs = 30_000

/** A worker that lives this long after it registered has proven itself without a Run. */
const provenAfterMs = 60_000

const firstBackoffMs = 1_000
const maxBackoffMs = 60_000

export const initialStartState: StartState = { starting: [], unproven: [], failures: 0, notBeforeMs: 0, lastFailure: undefined }

export function withStarted(state: StartState, name: string, nowMs: number): StartState {
  return { ...state, starting: [...state.starting, { name, sinceMs: nowMs }] }
}

/** A worker of the pool has registered. Failures are forgotten only when one has also taken a Run: see {@link withProven}. */
export function withRegistered(state: StartState, name: string, nowMs: number): StartState {
  if (!includesName(state.starting, name)) return state
  return { ...state, starting: without(state.starting, name), unproven: [...state.unproven, { name, sinceMs: nowMs }] }
}

/** A worker has taken a Run, or ended as it should: starting works (again). */
export function withProven(state: StartState, name: string): StartState {
  if (!includesName(state.unproven, name)) return state
  return { ...initialStartState, starting: state.starting, unproven: without(state.unproven, name) }
}

/** A worker did not come up, or failed before its first Run. Unknown names change nothing: it had a Run, or was given up before. */
export function withFailed(state: StartState, name: string, failure: StartFailure, nowMs: number): StartState {
  if (!includesName(state.starting, name) && !includesName(state.unproven, name)) return state
  // Those that were started together and fail together are one try.
  const isSameTry = nowMs < state.notBeforeMs
  const failures = isSameTry ? state.failures : state.failures + 1
  const backoffMs = Math.min(maxBackoffMs, firstBackoffMs * 2 ** Math.min(10, failures - 1))
  return {
    starting: without(state.starting, name),
    unproven: without(state.unproven, name),
    failures,
    notBeforeMs: isSameTry ? state.notBeforeMs : nowMs + backoffMs,
    lastFailure: failure,
  }
}

/** Something keeps a worker from coming up that may still pass, such as a registry that does not answer. Undefined: it passed. */
export function withStartFailing(state: StartState, name: string, failure: StartFailure | undefined): StartState {
  const one = state.starting.find(starting => starting.name === name)
  if (!one || (one.failure?.reason === failure?.reason && one.failure?.message === failure?.message)) return state
  const { sinceMs } = one
  return {
    ...state,
    starting: state.starting.map(other => (other === one ? { name, sinceMs, ...(failure && { failure }) } : other)),
  }
}

/** A worker is gone that nothing more is to be heard of, and nobody has to be told. */
export function withRemoved(state: StartState, name: string): StartState {
  if (!includesName(state.starting, name) && !includesName(state.unproven, name)) return state
  return {
    ...state,
    starting: without(state.starting, name),
    unproven: without(state.unproven, name),
  }
}

/** Gives up workers that should have registered by now, and tells their names; trusts those that have lived for a while. */
export function withTimeouts(
  state: StartState,
  nowMs: number,
  withinMs: number = registerWithinMs,
): { readonly state: StartState; readonly timedOut: readonly string[] } {
  let next = state
  const timedOut: string[] = []
  for (const { name, sinceMs } of state.unproven) if (nowMs - sinceMs >= provenAfterMs) next = withProven(next, name)
  for (const { name, sinceMs, failure } of state.starting) {
    if (nowMs - sinceMs < withinMs) continue
    const message = `worker ${name} did not register within ${withinMs / 1_000} s`
    next = withFailed(
      next,
      name,
      failure ? { ...failure, message: `${message}: ${failure.message}` } : { reason: 'RegistrationFailed', message },
      nowMs,
    )
    timedOut.push(name)
  }
  return { state: next, timedOut }
}

/** When {@link withTimeouts} has something to do next; undefined when nothing is starting. */
export function nextTimeoutMs(state: StartState, withinMs: number = registerWithinMs): number | undefined {
  const registerBy = state.starting.map(({ sinceMs }) => sinceMs + withinMs)
  const provenAt = state.unproven.map(({ sinceMs }) => sinceMs + provenAfterMs)
  const next = Math.min(...registerBy, ...provenAt)
  return next === Number.POSITIVE_INFINITY ? undefined : next
}

const includesName = (some: readonly { name: string }[], name: string) => some.some(one => one.name === name)
const without = <One extends { name: string }>(some: readonly One[], name: string) => some.filter(one => one.name !== name)

/** What to tell about starting workers of a pool: the trouble one is in now, else why the last one failed. */
export function currentFailure({ starting, failures, lastFailure }: StartState): StartFailure | undefined {
  const present = starting.find(({ failure }) => failure)?.failure
  if (present) return present
  return failures > 0 ? lastFailure : undefined
}
