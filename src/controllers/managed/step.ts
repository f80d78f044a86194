/** The steps of a reconcile, and what they are decided from. */
import type { OperationState } from './dispatch/decide-operation.ts'
import type { OperationKind } from './dispatch/operation.ts'
import type { Change, LateInitialized, ManagedObject, Observation } from './managed-object.ts'

/** What a kind's controller was configured with. */
export type Settings = {
  /** Whether a creation that is repeated finds what the first one made, because the external name is known before. */
  readonly hasDeterministicNames: boolean
  /** Whether the external system chooses the external name: then it is empty before the creation. */
  readonly assignsExternalNames: boolean
  readonly hasReferences: boolean
  /** Whether something must be done for a resource that is paused. */
  readonly pauses: boolean
  readonly pollIntervalMs: number
  /** The least that the annotation of an object may ask for. */
  readonly minimumPollIntervalMs: number
  /** How long after a creation an observation that finds nothing is not believed. */
  readonly creationGraceMs: number
  /** Operations that workers execute; empty if none. */
  readonly dispatched: ReadonlySet<OperationKind>
  /** How soon after a deletion was requested its effect is checked. */
  readonly deletionCheckMs: number
}

/** What a step failed with. */
export type Failure = {
  readonly step: Step['kind']
  readonly message: string
  /**
   * `conflict`: the object changed since it was read. `unknown`: a call of the external system was given up, so that it may or may not have had its
   * effect. `failed`: it had none.
   */
  readonly kind: 'conflict' | 'failed' | 'unknown'
}

/** What is known in this reconcile. */
export type Facts = {
  /** As last read or written. */
  readonly object: ManagedObject
  /** The steps done. */
  readonly done: ReadonlySet<Step['kind']>
  readonly observation?: Observation | undefined
  /** What the observed resource adds to fields that the user left out; undefined if nothing. */
  readonly lateInitialized?: LateInitialized | undefined
  /** The last operation that was dispatched, once it was read. */
  readonly operation?: OperationState | undefined
  /** What the creation or update answered. */
  readonly change?: Change | undefined
  readonly failure?: Failure | undefined
  /** Of the owner, with lock `shard`. */
  readonly fence?: number | undefined
}

export type ConditionPart = { readonly status: 'True' | 'False'; readonly reason: string; readonly message: string }

export type End = {
  readonly kind: 'end'
  readonly synced?: ConditionPart | undefined
  readonly ready?: ConditionPart | undefined
  /** `never`: the next change of the object. `backoff`: later with every consecutive failure. */
  readonly requeue: 'never' | 'backoff' | { readonly afterMs: number }
  readonly event?: { readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string } | undefined
  /** The finalizer is gone: there is no status to write. */
  readonly isGone?: true
}

export type Step =
  | { readonly kind: 'pause' }
  | { readonly kind: 'set-external-name'; readonly externalName: string }
  | { readonly kind: 'resolve-references' }
  | { readonly kind: 'connect' }
  | { readonly kind: 'observe' }
  | { readonly kind: 'publish-observed' }
  | { readonly kind: 'publish-changed' }
  | { readonly kind: 'unpublish' }
  | { readonly kind: 'add-finalizer' }
  | { readonly kind: 'remove-finalizer' }
  /** By a plain update: a conflict is wanted, because a stale object must not lead to a creation. */
  | { readonly kind: 'mark-pending'; readonly annotations: Readonly<Record<string, string>> }
  /** `failures`, if it is dispatched: consecutive ones before it. */
  | { readonly kind: 'create'; readonly failures?: number | undefined }
  /** Repeated on conflicts: what is lost here would be created again, or never found. */
  | { readonly kind: 'mark-result'; readonly annotations: Readonly<Record<string, string>> }
  | { readonly kind: 'late-initialize'; readonly fields: LateInitialized }
  | { readonly kind: 'update'; readonly failures?: number | undefined }
  | { readonly kind: 'delete'; readonly failures?: number | undefined }
  | { readonly kind: 'read-operation' }
  /** The result of an operation that was dispatched has been acted on. */
  | { readonly kind: 'finish-operation' }
  | End
