import type { Run, Subject, Tenant, Worker, WorkerPool } from '../../api/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'
import type { ObjectVersion } from './object-version.ts'
import type { DriverWorker, ExitFailure, StartFailure } from './pool/index.ts'

/** The two clocks of the caller. Deciders read no clock. */
export type Now = {
  /** Wall clock in milliseconds, for timestamps and durations that people read. */
  readonly wallMs: number
  /** Monotonic clock in milliseconds, for Leases (invariant 2). */
  readonly monotonicMs: number
}

/** `Rejected`: the object has changed or was deleted since the decision. `Failed`: the server did not respond, or refused the write for another reason. */
export type WriteOutcome = 'Written' | 'Rejected' | 'Failed'

/** What {@link DispatchCore.observe} accepts: changes of objects, reports of pool drivers, and the outcome of the actions that were decided. */
export type DispatchEvent =
  // Objects. Each is reported once at the start, when this process becomes the leader, and at each change.
  | {
      readonly kind: 'RunChanged'
      readonly run: Run
      /** True at the start: recent usage of tenants is restored from ended Runs. */
      readonly isInitial?: boolean
    }
  | { readonly kind: 'RunDeleted'; readonly run: Run }
  | { readonly kind: 'WorkerChanged'; readonly worker: Worker }
  | { readonly kind: 'WorkerDeleted'; readonly worker: Worker }
  | { readonly kind: 'LeaseChanged'; readonly lease: WorkerLease }
  | { readonly kind: 'LeaseDeleted'; readonly worker: string }
  | { readonly kind: 'PoolChanged'; readonly pool: WorkerPool }
  | { readonly kind: 'PoolDeleted'; readonly pool: WorkerPool }
  | { readonly kind: 'TenantChanged'; readonly tenant: Tenant }
  | { readonly kind: 'TenantDeleted'; readonly tenant: Tenant }
  | { readonly kind: 'NamespaceChanged'; readonly namespace: KubeObject<unknown> }
  | { readonly kind: 'NamespaceDeleted'; readonly namespace: KubeObject<unknown> }
  /** `recordedEpoch`: it has recorded the ends of its Runs up to this one; Infinity if it gets no further Run. */
  | { readonly kind: 'SubjectChanged'; readonly subject: Subject; readonly recordedEpoch: number }
  | { readonly kind: 'SubjectDeleted'; readonly subject: Subject }
  // Pool drivers.
  /** A process or Pod of a worker exists. `failure`: its start is failing at the moment; it may still succeed. */
  | { readonly kind: 'ProcessObserved'; readonly process: DriverWorker }
  /** `exitCode` is undefined if the worker was killed or evicted; `failure` is more specific than the exit code. */
  | {
      readonly kind: 'WorkerExited'
      readonly worker: string
      readonly exitCode: number | undefined
      readonly failure?: ExitFailure | undefined
    }
  | { readonly kind: 'StartFailed'; readonly pool: string; readonly worker: string; readonly failure: StartFailure }
  // Outcomes of actions.
  | { readonly kind: 'WriteSettled'; readonly object: ObjectVersion; readonly outcome: WriteOutcome }
  /** The creation of a Run that {@link DispatchCore.placeNewRun} has placed has succeeded or failed. */
  | { readonly kind: 'CreationSettled'; readonly run: ObjectVersion }
  /** The server was asked: the subject of a Run does not exist. */
  | { readonly kind: 'SubjectMissing'; readonly subject: Subject }
  /**
   * `Lost`: the Lease was not renewed and is deleted. `Renewed`: it was renewed. `Failed`: the server did not respond. `lease`: the renewed one, of a worker that
   * this dispatcher does not watch.
   */
  | {
      readonly kind: 'LossSettled'
      readonly worker: string
      readonly outcome: 'Lost' | 'Renewed' | 'Failed'
      readonly lease?: WorkerLease | undefined
    }

/** The Lease of a worker, or another Lease of the same namespace. */
export type WorkerLease = {
  readonly worker: string
  readonly uid: string
  /** Changes with each renewal, and only then. */
  readonly resourceVersion: string
  /** True if it has the label of a pool. Without that it is a worker's only if a Worker of its name exists. */
  readonly isOfWorker: boolean
  /** Of the Lease itself. */
  readonly durationMs?: number | undefined
  /** True: no watch delivers its changes. It was read once, and is forgotten with the last Run of its worker. */
  readonly isUnwatched?: boolean | undefined
}
