import type { ApprovalPolicy, Run, RunFailureReason, RunSpec, Stack, StackStatus, StateErrorReason } from '../../api/index.ts'
import type { StatusCause } from '../../kubernetes/object/index.ts'
import type { StackEvent } from './conditions.ts'
import type { Dependency } from './dependencies.ts'
import type { Attempts } from './persistent-failure.ts'

/** Why the revision of a source is not known. */
export type RevisionError = {
  readonly reason: RunFailureReason
  readonly message: string
  readonly retryable: boolean
  /** When the next attempt is due; undefined if a retry does not help. Milliseconds. */
  readonly nextMs?: number
  /** The attempts since the last success or the start of the process, if they are persistent. */
  readonly attempts?: Attempts
}

/** A lock on a state that a user or a tool holds, and not a Run. */
export type UserLock = { readonly holder: string; readonly sinceMs: number }

/** Whether the stores have the state that the last Run left; `error` if not. `lock`: a user holds the lock of the state, so a Run would fail. */
export type StateCheck = {
  readonly error?: { readonly reason: StateErrorReason; readonly message: string } | undefined
  readonly lock?: UserLock | undefined
}

export type StackInput = {
  readonly stack: Stack
  /** Every Run of the Stack. Must include the one that `status.lastRun` names, if it exists: read it from the server when the cache lags. */
  readonly runs: readonly Run[]
  /** The Stacks it depends on ({@link dependencyNames}), in order. */
  readonly dependencies: readonly Dependency[]
  /** Names of the existing Stacks that depend on it. */
  readonly dependents: readonly string[]
  /** The cycle it is part of, such as `['a', 'b', 'a']`. */
  readonly cycle?: readonly string[] | undefined
  readonly specErrors: readonly StatusCause[]
  /** Secrets, keys and ConfigMaps that its variables and environment reference and that do not exist. */
  readonly inputErrors?: readonly StatusCause[]
  /** The current revision of the source; undefined while it is being resolved. */
  readonly revision: string | undefined | { readonly error: RevisionError }
  readonly inputsDigest: string
  /** What the stores have of its state; undefined while that is not known. */
  readonly state?: StateCheck | undefined
  readonly nowMs: number
  /** What the namespace requires, whatever the spec says. */
  readonly approvalPolicy?: ApprovalPolicy | undefined
  readonly approvalTimeoutMs: number
  /** Whether the status may report now that its Run waits in the queue, if nothing else is new. Default: true. */
  readonly mayReportQueued?: boolean
  /** A constant of the Stack between 0 and 1 that spreads drift checks ({@link jitterOf}). */
  readonly jitter: number
}

export type StackDecision = {
  /** The whole next status. Equal to the present one when nothing is to be written. */
  readonly status: StackStatus
  /** To be created before the status is written: after a crash between the two, the Run is found by its number. */
  readonly createRun?: { readonly name: string; readonly spec: RunSpec }
  /** A waiting Run that `createRun` replaces: end it as Canceled, at exactly this version, before the new one is created. */
  readonly supersedeRun?: { readonly name: string; readonly resourceVersion: string; readonly by: string }
  /** Cancel it at exactly this version. */
  readonly cancelRun?: { readonly name: string; readonly resourceVersion: string; readonly reason?: 'Outdated' | 'StackDeleted' }
  /** Ended Runs beyond the history limit, to be deleted after the status is written: it contains their results. */
  readonly deleteRuns: readonly { readonly name: string; readonly uid: string }[]
  /** The lineage of a pending import whose state is stored: to be recorded before a Run is created. */
  readonly completeImport?: string
  /** To be added before a Run is created. */
  readonly addFinalizer?: boolean
  readonly removeFinalizer?: boolean
  readonly events: readonly StackEvent[]
  /** The status does not report yet that its Run waits in the queue: decide again with {@link StackInput.mayReportQueued}. */
  readonly isQueuedReportDue?: true
  /** Decide again after this time even if nothing changes. */
  readonly requeueAfterMs?: number
}
