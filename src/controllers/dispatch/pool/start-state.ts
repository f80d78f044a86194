import { exponentialDelayMs } from '../../../kubernetes/util/index.ts'

/**
 * Why a worker failed to start; the reason of the pool's condition `Ready`.
 * `CreateFailed`: its process or Pod could not be created. `QuotaExceeded`: a ResourceQuota allows no more Pods. `ImagePullFailed`,
 * `ContainerConfigError`, `Unschedulable`: its Pod exists and does not run, or no host has claimed it. `CredentialRejected`: the server rejected its credential.
 * `CrashedOnStartup`: it exited before it started a Run. `Evicted`, `Preempted`, `NodeLost`, `PodDeleted`: its Pod was ended by others. `RegistrationFailed`: it did not register in time.
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
  | 'Preempted'
  | 'NodeLost'
  | 'PodDeleted'
  | 'RegistrationFailed'

export type StartFailure = { readonly reason: StartFailureReason; readonly message: string }

export type StartingWorker = {
  readonly name: string
  readonly sinceMs: number
  readonly failure?: StartFailure
  /** As in the spec of its Worker. */
  readonly trustDomain?: string | undefined
}

/** Starting workers of one pool, and the backoff after failures. */
export type StartState = {
  /** Started and not registered. They count as workers, so that a slow start does not cause another one. */
  readonly starting: readonly StartingWorker[]
  /** Registered recently, without a Run so far. If one of these exits, the next worker would probably fail as well. */
  readonly unproven: readonly { readonly name: string; readonly sinceMs: number }[]
  /** Failed attempts since the last worker that was proven. */
  readonly failures: number
  /** End of the backoff. */
  readonly notBeforeMs: number
  /** Why the last attempt failed; undefined if none has failed. */
  readonly lastFailure: StartFailure | undefined
  /** By trust domain: the same for Pods that are created for one. What a Stack names wrong must not delay the others of the pool. */
  readonly domains: ReadonlyMap<string, DomainFailures>
  /** That of the Pod which has registered last; undefined if none was created for a trust domain. */
  readonly lastStartedDomain: string | undefined
}

export type DomainFailures = Pick<StartState, 'failures' | 'notBeforeMs'> & { readonly lastFailure: StartFailure }

/** Default time for a worker to register after its start; later its start counts as failed. */
export const registerWithinMs = 30_000

/** A worker is proven without a Run when it has been registered for this long. */
const provenAfterMs = 60_000

const backoff = { minMs: 1_000, maxMs: 60_000 }

export const initialStartState: StartState = {
  starting: [],
  unproven: [],
  failures: 0,
  notBeforeMs: 0,
  lastFailure: undefined,
  domains: new Map(),
  lastStartedDomain: undefined,
}

export function withStarted(state: StartState, name: string, nowMs: number, trustDomain?: string): StartState {
  return { ...state, starting: [...state.starting, { name, sinceMs: nowMs, ...(trustDomain !== undefined && { trustDomain }) }] }
}

/** A worker has registered. Its pool leaves the backoff only when the worker is proven, see {@link withProven}. */
export function withRegistered(state: StartState, name: string, nowMs: number): StartState {
  const one = state.starting.find(starting => starting.name === name)
  if (!one) return state
  const domains = new Map(state.domains)
  if (one.trustDomain !== undefined) domains.delete(one.trustDomain)
  const lastStartedDomain = one.trustDomain ?? state.lastStartedDomain
  return {
    ...state,
    domains,
    lastStartedDomain,
    starting: without(state.starting, name),
    unproven: [...state.unproven, { name, sinceMs: nowMs }],
  }
}

/** A worker has started a Run, or ended normally: starting workers works, so the backoff is reset. */
export function withProven(state: StartState, name: string): StartState {
  if (!includesName(state.unproven, name)) return state
  const { domains, lastStartedDomain, starting } = state
  return { ...initialStartState, domains, lastStartedDomain, starting, unproven: without(state.unproven, name) }
}

/** A worker failed to start, or exited before its first Run. Unknown names are ignored: that worker was proven or has timed out. */
export function withFailed(state: StartState, name: string, failure: StartFailure, nowMs: number): StartState {
  if (!includesName(state.starting, name) && !includesName(state.unproven, name)) return state
  const domain = state.starting.find(starting => starting.name === name)?.trustDomain
  if (domain !== undefined) return withDomainFailed(state, name, domain, failure, nowMs)
  // Workers that were started together and fail together are one attempt.
  const isSameAttempt = nowMs < state.notBeforeMs
  const failures = isSameAttempt ? state.failures : state.failures + 1
  return {
    ...state,
    starting: without(state.starting, name),
    unproven: without(state.unproven, name),
    failures,
    notBeforeMs: isSameAttempt ? state.notBeforeMs : nowMs + exponentialDelayMs(failures, backoff),
    lastFailure: failure,
  }
}

function withDomainFailed(state: StartState, name: string, domain: string, lastFailure: StartFailure, nowMs: number): StartState {
  const failures = (state.domains.get(domain)?.failures ?? 0) + 1
  const notBeforeMs = nowMs + exponentialDelayMs(failures, backoff)
  const domains = new Map(state.domains).set(domain, { failures, notBeforeMs, lastFailure })
  return { ...state, domains, starting: without(state.starting, name) }
}

/** The start of a worker is failing but may still succeed, for example when a registry is unavailable. Undefined: it no longer fails. */
export function withStartFailing(state: StartState, name: string, failure: StartFailure | undefined): StartState {
  const one = state.starting.find(starting => starting.name === name)
  if (!one || (one.failure?.reason === failure?.reason && one.failure?.message === failure?.message)) return state
  const { failure: _, ...others } = one
  return {
    ...state,
    starting: state.starting.map(other => (other === one ? { ...others, ...(failure && { failure }) } : other)),
  }
}

/** A worker was removed on purpose, which is no failure. */
export function withRemoved(state: StartState, name: string): StartState {
  if (!includesName(state.starting, name) && !includesName(state.unproven, name)) return state
  return {
    ...state,
    starting: without(state.starting, name),
    unproven: without(state.unproven, name),
  }
}

/** When the failures of a trust domain for which no Pod is started any more are forgotten; Infinity while one is starting. */
const forgottenAtMs = ({ starting }: StartState, [domain, { notBeforeMs }]: readonly [string, DomainFailures]): number =>
  starting.some(({ trustDomain }) => trustDomain === domain) ? Number.POSITIVE_INFINITY : notBeforeMs + backoff.maxMs

/**
 * Fails starts that have timed out and returns their names; workers that have been registered for long enough are proven, and failures of trust
 * domains are forgotten after the longest backoff without an attempt: no Run needs their Pods any more.
 */
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
  const remaining = [...next.domains].filter(entry => nowMs < forgottenAtMs(next, entry))
  if (remaining.length < next.domains.size) next = { ...next, domains: new Map(remaining) }
  return { state: next, timedOut }
}

/** When {@link withTimeouts} changes the state next; undefined if it will not. */
export function nextTimeoutMs(state: StartState, withinMs: number = registerWithinMs): number | undefined {
  const registerBy = state.starting.map(({ sinceMs }) => sinceMs + withinMs)
  const provenAt = state.unproven.map(({ sinceMs }) => sinceMs + provenAfterMs)
  const forgottenAt = [...state.domains].map(entry => forgottenAtMs(state, entry))
  const next = Math.min(...registerBy, ...provenAt, ...forgottenAt)
  return next === Number.POSITIVE_INFINITY ? undefined : next
}

const includesName = (some: readonly { name: string }[], name: string) => some.some(one => one.name === name)
const without = <One extends { name: string }>(some: readonly One[], name: string) => some.filter(one => one.name !== name)

/** Why Pods of this trust domain fail to start; undefined if they do not. */
export const domainFailure = (state: StartState | undefined, domain: string | undefined): DomainFailures | undefined =>
  domain === undefined ? undefined : state?.domains.get(domain)

/** Why Pods fail to start, by trust domain; that of a Pod which is starting precedes that of the last attempt. */
export function failingDomains({ starting, domains }: StartState): ReadonlyMap<string, StartFailure> {
  const failing = new Map([...domains].map(([domain, { lastFailure }]) => [domain, lastFailure]))
  for (const { trustDomain, failure } of starting) if (trustDomain !== undefined && failure) failing.set(trustDomain, failure)
  return failing
}

/** The failure to report for all workers of a pool: that of a worker that is starting, else that of the last attempt. */
export function currentFailure({ starting, failures, lastFailure }: StartState): StartFailure | undefined {
  const present = starting.find(({ failure, trustDomain }) => failure && trustDomain === undefined)?.failure
  if (present) return present
  return failures > 0 ? lastFailure : undefined
}
