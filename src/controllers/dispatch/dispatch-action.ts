import type {
  ReportedPoolDemand,
  RunPolicy,
  RunSpec,
  Subject,
  Tenant,
  TenantStatus,
  WorkerPod,
  WorkerPool,
  WorkerPoolStatus,
} from '../../api/index.ts'
import { type ObjectVersion, versionOf } from './object-version.ts'
import type { ScaleReason, StartFailure, WorkerPurpose, WorkerReport } from './pool/index.ts'
import type { TenantCounts } from './status/tenant-status.ts'

/**
 * What the shell has to do. An action that writes names the {@link ObjectVersion} that it was decided from, and its outcome is reported as
 * `WriteSettled`; until then nothing else is decided for that object.
 */
export type DispatchAction =
  // Runs
  | {
      readonly kind: 'AssignRun'
      readonly object: ObjectVersion
      readonly worker: string
      /** Undefined: it is no Pod that this controller created. */
      readonly workerPod: WorkerPod | undefined
      /** Written into the spec of the Worker before: the trust domain of its first Run. */
      readonly record: { readonly object: ObjectVersion; readonly trustDomain: string } | undefined
      readonly pool: string
      readonly atMs: number
      /** Time since the creation of the Run. */
      readonly queuedMs: number
      /** All finalizers of the Run after the assignment. */
      readonly finalizers: readonly string[]
      /** What its Tenant and its pool require. */
      readonly policy: RunPolicy
      /** Undefined: its namespace belongs to none. */
      readonly tenant: RunSpec['tenant']
    }
  | {
      readonly kind: 'PatchRunStatus'
      readonly object: ObjectVersion
      /** A merge patch: null removes a field. */
      readonly status: RunStatusPatch
      /** True: also reported as an Event of type Warning. */
      readonly isWarning?: boolean
      /** Its engine may have been interrupted: the stores are asked which operations were, and the status lists them. */
      readonly interrupted?: Subject
    }
  | { readonly kind: 'CancelRun'; readonly object: ObjectVersion; readonly reason?: 'StackDeleted' }
  /** Removes the finalizer of an ended Run that is being deleted. */
  | { readonly kind: 'ReleaseRun'; readonly object: ObjectVersion; readonly finalizers: readonly string[] }
  /** The subject may be missing only from the cache: read the server, and report `SubjectMissing` or `SubjectChanged`, then `WriteSettled`. */
  | { readonly kind: 'ConfirmSubject'; readonly object: ObjectVersion; readonly subject: Subject }
  // Workers
  | {
      readonly kind: 'StartWorkers'
      readonly pool: WorkerPool
      readonly workers: readonly string[]
      /** By name of the worker. */
      readonly purposes: ReadonlyMap<string, WorkerPurpose>
      readonly reason: ScaleReason
      /**
       * The new value of the pool's `status.started`, which is written before any worker is started. A controller that crashes after it, or
       * that is no longer the leader, therefore never creates one twice, and no name is used again (invariant 2). Undefined: child processes.
       */
      readonly claim: number | undefined
    }
  | {
      readonly kind: 'StopProcess'
      readonly worker: string
      readonly force: boolean
      readonly reason: 'StartTimeout' | 'NoWorkerObject' | 'NotNeeded'
    }
  | {
      readonly kind: 'ReportStartFailure'
      readonly pool: WorkerPool | undefined
      readonly name: string
      readonly failures: number
      readonly failure: StartFailure
    }
  | { readonly kind: 'DrainWorker'; readonly object: ObjectVersion; readonly pool: string; readonly reason: ScaleReason }
  /**
   * A stalled watch looks like a worker that stopped renewing: read the Lease from the server; if it is still at `lease`, delete it at exactly that version,
   * so that every later renewal fails. Report `LossSettled`. `lease` is undefined if the worker has none.
   */
  | {
      readonly kind: 'ConfirmLoss'
      readonly worker: string
      readonly lease: { readonly uid: string; readonly resourceVersion: string } | undefined
    }
  /** Deletes the Worker of a lost worker, after its Runs are Lost. */
  | { readonly kind: 'DeleteWorker'; readonly object: ObjectVersion }
  /**
   * Deletes the Workers of Pods that have succeeded, with one request that selects them by their names in the label `oarlock.dev/worker`. It needs no
   * versions: they have ended for good, and no name is used again.
   */
  | { readonly kind: 'DeleteWorkers'; readonly names: readonly string[] }
  /** In place of `DeleteWorker`, for a worker whose Pod has ended: both are deleted later (`pool/pods/decide-worker-pods.ts`). */
  | { readonly kind: 'FailWorker'; readonly object: ObjectVersion; readonly status: WorkerReport }
  // Statuses
  | { readonly kind: 'PatchPoolStatus'; readonly pool: WorkerPool; readonly status: WorkerPoolStatus }
  | { readonly kind: 'PatchTenantStatus'; readonly tenant: Tenant; readonly status: TenantStatus }
  /** Writes `status.demand` of this partition into the WorkerPool at home; null removes it. */
  | { readonly kind: 'ReportDemand'; readonly object: ObjectVersion; readonly report: ReportedPoolDemand | null }
  /** Writes the counts of a Tenant of this partition into its status at home. */
  | { readonly kind: 'ReportTenant'; readonly object: ObjectVersion; readonly counts: TenantCounts }

export type RunStatusPatch = {
  readonly phase: 'Queued' | 'Assigned' | 'Canceled' | 'Lost'
  readonly reason: string | null
  readonly message: string | null
  readonly queuePosition?: number | null
  readonly finishedAt?: string
}

export type DispatchDecision = {
  readonly actions: readonly DispatchAction[]
  /** Time until the next decision is due even if nothing is observed; undefined if none is. */
  readonly requeueAfterMs: number | undefined
}

/** The object that is not decided again until the action has been executed. */
export function writtenObject(action: DispatchAction): ObjectVersion | undefined {
  switch (action.kind) {
    case 'PatchPoolStatus':
      return versionOf('WorkerPool', action.pool)
    case 'StartWorkers':
      return action.claim === undefined ? undefined : versionOf('WorkerPool', action.pool)
    case 'PatchTenantStatus':
      return versionOf('Tenant', action.tenant)
    default:
      return 'object' in action ? action.object : undefined
  }
}
