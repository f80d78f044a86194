import type { Registry } from 'prom-client'
import type { Client } from '../../kubernetes/client/index.ts'
import type { ControllerOptions, Log } from '../../kubernetes/controller/index.ts'
import type { JsonObject, KubeObject, Resource } from '../../kubernetes/object/index.ts'
import type { ChangeLog } from './change-log.ts'
import type { DispatchOptions } from './dispatch/dispatch-options.ts'
import type { Change, ConnectionDetails, ManagedBody, Observation } from './managed-object.ts'
import type { Reference } from './references.ts'
import type { ResourceLocks } from './resource-locks.ts'

/** What every call of an author's function is given. */
export type ExternalRequest<Body> = {
  /** As last read or written; frozen. */
  readonly object: KubeObject<Body>
  /** The name in the external system; undefined until a system that assigns names has done so. */
  readonly externalName: string | undefined
  /** Aborts when the time is up, the process stops, or the lock may be lost: pass it to every call. */
  readonly signal: AbortSignal
  /** With lock `shard`: higher than that of every earlier owner. Pass it to an external system that can reject a lower one. */
  readonly fence: number | undefined
  /** The API server, for what the resource refers to, such as credentials. */
  readonly client: Client
  readonly log: Log
  /** What `dispatch.variables` returned, in an operation that a worker executes. */
  readonly variables?: JsonObject | undefined
}

export type ManagedOptions<Body extends ManagedBody = ManagedBody, Connection = unknown, State = unknown> = {
  /** The controller starts when its CRD is Established, and stops when it is deleted. */
  readonly kind: Resource<Body>
  /** Name of the controller, in metrics, Events and the change log. Default: the plural of the kind. */
  readonly name?: string | undefined
  /** Opens what the other functions use: a client with the credentials of this resource. */
  connect(request: ExternalRequest<Body>): Promise<Connection>
  /** Called after every `connect` that succeeded, also after failures. */
  disconnect?(connection: Connection): Promise<void>
  /** Must only read. */
  observe(connection: Connection, request: ExternalRequest<Body>): Promise<Observation<State>>
  /** Called at most once for each mark `external-create-pending`. @throws {UnknownOutcomeError} if it may have had its effect. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a return is common
  create(connection: Connection, request: ExternalRequest<Body>): Promise<Change | void>
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a return is common
  update(connection: Connection, request: ExternalRequest<Body>, observation: Observation<State>): Promise<Change | void>
  /** Requests the deletion. It need not wait for it: `observe` is called until nothing exists. */
  delete(connection: Connection, request: ExternalRequest<Body>, observation: Observation<State>): Promise<void>
  /** Fields of `spec.forProvider` that the user left out, as observed; only those that are missing are written. */
  lateInitialize?(observation: Observation<State>, object: KubeObject<Body>): JsonObject | undefined
  /** Default: a Secret in the same namespace, if `spec.writeConnectionSecretToRef` names one. */
  publish?(details: ConnectionDetails, request: ExternalRequest<Body>): Promise<void>
  /** Undoes what `publish` did. Default: the garbage collector deletes the Secret. */
  unpublish?(request: Omit<ExternalRequest<Body>, 'externalName'>): Promise<void>
  /** Called while the resource is paused: stops what would continue to change the external resource without this controller. Default: nothing would. */
  pause?(request: ExternalRequest<Body>): Promise<void>
  /** Operations that workers execute with these functions, because they take long. Default: all are called in the reconcile. */
  readonly dispatch?: DispatchOptions<Body> | undefined
  readonly references?: readonly Reference[] | undefined
  /** Kinds that the resource controls, and others that it depends on: their changes reconcile it, as in {@link ControllerOptions}. */
  readonly owns?: ControllerOptions<Body>['owns']
  readonly watches?: ControllerOptions<Body>['watches']
  /**
   * Who names the external resource. `metadata.name` (default): the annotation `crossplane.io/external-name` is set to the name of the object before anything is
   * created. `assigned`: the external system does, and `create` returns the name.
   */
  readonly externalNames?: 'metadata.name' | 'assigned' | undefined
  /** Whether a repeated `create` finds what an earlier one made instead of making another. Default false: a creation with an unknown result is not repeated. */
  readonly hasDeterministicNames?: boolean | undefined
  /**
   * Who may work on a resource when several replicas are active. `none` (default): this is the only one, or the only leader. `shard`: the owner of its bucket, in
   * a manager with `shards`. A {@link ResourceLocks}: the replica that holds a Lease for the resource.
   */
  readonly lock?: 'none' | 'shard' | ResourceLocks | undefined
  /** The longest time between two observations; default 60,000. Each is up to 10 % earlier. An object may ask for another with `crossplane.io/poll-interval`. */
  readonly pollIntervalMs?: number | undefined
  /** The shortest interval that an object may ask for; default 1,000. */
  readonly minimumPollIntervalMs?: number | undefined
  /** How long after a creation an observation that finds nothing is not believed; default 30,000. */
  readonly creationGraceMs?: number | undefined
  /** How soon the effect of a deletion is checked; default 2,000. */
  readonly deletionCheckMs?: number | undefined
  /** For all external calls of one reconcile together; default 60,000. Writing the result has 30 s more. */
  readonly timeoutMs?: number | undefined
  /** Resources reconciled concurrently; default 10. */
  readonly maxConcurrent?: number | undefined
  /** Of a resource that fails; default: from 1 s, doubling up to 60 s. */
  readonly backoff?: { readonly baseDelayMs?: number | undefined; readonly maxDelayMs?: number | undefined } | undefined
  /** For Crossplane's metrics; default: none. */
  readonly registry?: Registry | undefined
  readonly changeLog?: ChangeLog | undefined
  /** Wall clock in milliseconds, and a random number in [0, 1); for tests. */
  readonly wallMs?: (() => number) | undefined
  readonly random?: (() => number) | undefined
}
