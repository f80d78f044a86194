import { setTimeout } from 'node:timers/promises'
import {
  formatPendingOperations,
  isEnded,
  labels,
  type PendingOperations,
  runResource,
  type Subject,
  stackResource,
  systemNamespace,
  tenantResource,
  workerPoolResource,
  workerResource,
} from '../../../api/index.ts'
import { type LeaseBody, leaseResource } from '../../../kubernetes/client/index.ts'
import { coerceError, type EventRecorder, type Log, type Manager, patchStatusIfChanged } from '../../../kubernetes/controller/index.ts'
import { isReason, type KubeObject, objectKey, rfc3339 } from '../../../kubernetes/object/index.ts'
import type { DispatchAction } from '../dispatch-action.ts'
import type { DispatchEvent, WriteOutcome } from '../dispatch-event.ts'
import { lossOf } from '../failure-detection/index.ts'
import { type ObjectVersion, versionOf } from '../object-version.ts'
import { type PoolDriver, StartError } from '../pool/index.ts'
import type { DispatchMetrics } from './metrics.ts'
import { subjectChanged, workerLeaseOf } from './observe-objects.ts'

/** The operations of a Stack that were interrupted, as the stores have them; undefined if there are none. */
export type ReadPendingOperations = (stack: Subject) => Promise<PendingOperations | undefined>

export type ExecuteActionsOptions = {
  readonly manager: Pick<Manager, 'leaderClient' | 'leaderClientOf'>
  /** By pool mode. */
  readonly poolDrivers: { readonly Process?: PoolDriver; readonly Pod?: PoolDriver }
  /** Where the workers are, and whether a worker is one that this dispatcher watches. Default: on the manager's own server, all of them. */
  readonly shared?: { readonly cluster: string; readonly partition: string; readonly isWatched: (worker: string) => boolean } | undefined
  readonly events: EventRecorder
  readonly metrics: DispatchMetrics
  /** Default: a Lost Run does not list them. */
  readonly readPendingOperations?: ReadPendingOperations | undefined
  /** Stores that do not answer delay that a Run is Lost by this much. Default 3,000. */
  readonly pendingTimeoutMs?: number
  readonly log: Log
  readonly observe: (event: DispatchEvent) => void
}

type Action<Kind extends DispatchAction['kind']> = Extract<DispatchAction, { kind: Kind }>

/**
 * Executes actions: writes to the API server and calls to pool drivers. Each write carries the version that it was decided from, and its outcome is
 * reported as an event (invariant 7).
 */
export class ActionExecutor {
  readonly #options: ExecuteActionsOptions
  readonly #running = new Set<Promise<unknown>>()

  constructor(options: ExecuteActionsOptions) {
    this.#options = options
  }

  /** Begins the action. Never throws. */
  execute(action: DispatchAction): void {
    const done: Promise<unknown> = this.#execute(action).catch((thrown: unknown) => {
      this.#options.log.error({ err: coerceError(thrown), action: action.kind }, 'bug: an action was not executed')
    })
    this.#running.add(done)
    void done.then(() => this.#running.delete(done))
  }

  /** Resolves when all actions have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#running)
  }

  async #execute(action: DispatchAction): Promise<unknown> {
    switch (action.kind) {
      case 'AssignRun':
        return await this.#assign(action)
      case 'PatchRunStatus':
        return await this.#write(action.object, () => this.#patchRunStatus(action))
      case 'CancelRun':
        return await this.#write(action.object, () =>
          this.#patchRun(action.object, { spec: { cancel: true, ...(action.reason && { cancelReason: action.reason }) } }),
        )
      case 'ReleaseRun':
        return await this.#write(action.object, () => this.#release(action))
      case 'ConfirmSubject':
        return await this.#write(action.object, () => this.#confirmSubject(action))
      case 'StartWorkers':
        return await this.#start(action)
      case 'StopProcess':
        this.#stop(action)
        return
      case 'ReportStartFailure':
        this.#reportStartFailure(action)
        return
      case 'DrainWorker':
        return await this.#drain(action)
      case 'ConfirmLoss':
        return await this.#confirmLoss(action)
      case 'DeleteWorker':
        return await this.#write(action.object, () => this.#deleteWorker(action))
      case 'DeleteWorkers':
        return await this.#deleteWorkers(action)
      case 'FailWorker':
        return await this.#write(action.object, () => this.#failWorker(action))
      case 'PatchPoolStatus': {
        const { pool, status } = action
        const handle = this.#client.resource(workerPoolResource)
        return await this.#write(versionOf('WorkerPool', pool), () => patchStatusIfChanged(handle, pool, status))
      }
      case 'PatchTenantStatus': {
        const { tenant, status } = action
        const handle = this.#client.resource(tenantResource)
        return await this.#write(versionOf('Tenant', tenant), () => patchStatusIfChanged(handle, tenant, status))
      }
      case 'ReportDemand':
        return await this.#write(action.object, () => this.#reportDemand(action))
      case 'ReportTenant':
        return await this.#write(action.object, () => this.#reportTenant(action))
    }
  }

  get #client() {
    return this.#options.manager.leaderClient
  }

  /** For Workers and their Leases. */
  get #workersClient() {
    return this.#options.manager.leaderClientOf(this.#options.shared?.cluster)
  }

  /** Runs `write` and reports its outcome, which is also returned. */
  async #write(object: ObjectVersion, write: () => Promise<unknown>): Promise<WriteOutcome> {
    const { observe, log } = this.#options
    let outcome: WriteOutcome = 'Written'
    try {
      await write()
    } catch (thrown) {
      outcome = isReason(thrown, 'Conflict', 'NotFound') ? 'Rejected' : 'Failed'
      const { kind, namespace, name } = object
      if (outcome === 'Failed') log.warn({ err: coerceError(thrown), kind, namespace, name }, 'write failed, retrying in 1 s')
    }
    observe({ kind: 'WriteSettled', object, outcome })
    return outcome
  }

  async #patchRun({ name, namespace, resourceVersion }: ObjectVersion, patch: object): Promise<void> {
    await this.#client.resource(runResource).patch(name, patch, { type: 'merge', namespace, resourceVersion })
  }

  // ---- Runs

  async #assign(action: Action<'AssignRun'>): Promise<void> {
    const { object, worker, workerPod, record, pool, atMs, queuedMs, finalizers, policy, tenant } = action
    const assigned = { workerName: worker, ...(workerPod && { workerPod }), assignedAt: rfc3339(atMs), policy }
    const patch = { metadata: { finalizers }, spec: { ...assigned, ...(tenant && { tenant }) } }
    const outcome = await this.#write(object, async () => {
      // First: from the moment at which the Run may start, no Run of another trust domain may be assigned to the worker.
      if (record) await this.#recordTrustDomain(record)
      await this.#patchRun(object, patch)
    })
    if (outcome === 'Written') this.#options.metrics.runAssigned(pool, queuedMs / 1_000)
  }

  /** Without a version: the server refuses a second trust domain, and accepts the same one again. */
  async #recordTrustDomain({ object: { name, uid }, trustDomain }: NonNullable<Action<'AssignRun'>['record']>): Promise<void> {
    await this.#workersClient.resource(workerResource).patch(name, { metadata: { uid }, spec: { trustDomain } }, { type: 'merge' })
  }

  async #patchRunStatus({ object, status, isWarning, interrupted }: Action<'PatchRunStatus'>): Promise<void> {
    const { name, namespace, resourceVersion } = object
    const pending = interrupted && (await this.#readPendingOperations(interrupted))
    const patch = pending
      ? { ...status, message: `${status.message}; ${formatPendingOperations(pending)}`, pendingOperations: pending }
      : status
    const run = await this.#client.resource(runResource).patchStatus(name, { status: patch }, { namespace, resourceVersion })
    if (isWarning && status.reason && status.message) this.#options.events.warning(run, status.reason, status.message)
  }

  /** Now, because a status is final: the next Run finds them too, but this one is what was interrupted. */
  async #readPendingOperations(stack: Subject): Promise<PendingOperations | undefined> {
    const { readPendingOperations, pendingTimeoutMs = 3_000, log } = this.#options
    if (!readPendingOperations) return undefined
    const timeout = new AbortController()
    try {
      const late = setTimeout(pendingTimeoutMs, undefined, { signal: timeout.signal, ref: false })
      return await Promise.race([readPendingOperations(stack), late])
    } catch (thrown) {
      log.warn({ err: coerceError(thrown), stack: stack.name, namespace: stack.namespace }, 'failed to read interrupted operations')
      return undefined
    } finally {
      timeout.abort()
    }
  }

  /** This write may delete the Run. */
  async #release({ object, finalizers }: Action<'ReleaseRun'>): Promise<void> {
    try {
      await this.#patchRun(object, { metadata: { finalizers } })
    } catch (error) {
      if (!isReason(error, 'NotFound')) throw error
    }
  }

  async #confirmSubject({ subject }: Action<'ConfirmSubject'>): Promise<void> {
    const { name, namespace, uid } = subject
    const live = await this.#client.resource(stackResource).getOrUndefined(name, { namespace })
    this.#options.observe(live?.metadata.uid === uid ? subjectChanged(live) : { kind: 'SubjectMissing', subject })
  }

  /** Of the WorkerPool at home, through the gateway: here is a copy. */
  async #reportDemand({ object: { name }, report }: Action<'ReportDemand'>): Promise<void> {
    const { shared } = this.#options
    if (!shared) throw new Error('bug: demand is reported without other partitions')
    await this.#workersClient.resource(workerPoolResource).patchStatus(name, { status: { demand: { [shared.partition]: report } } })
  }

  /** Of the Tenant at home, as above. One that was deleted there meanwhile has no copy soon. */
  async #reportTenant({ object: { name }, counts }: Action<'ReportTenant'>): Promise<void> {
    await this.#workersClient.resource(tenantResource).patchStatus(name, { status: counts })
  }

  // ---- workers

  async #start({ pool, workers, purposes, reason, claim }: Action<'StartWorkers'>): Promise<void> {
    const { metrics, poolDrivers } = this.#options
    const { name, resourceVersion } = pool.metadata
    const { mode } = pool.spec
    if (claim !== undefined) {
      const handle = this.#client.resource(workerPoolResource)
      const write = () => handle.patchStatus(name, { status: { started: claim } }, { resourceVersion })
      if ((await this.#write(versionOf('WorkerPool', pool), write)) !== 'Written') return
    }
    metrics.scaled(name, 'up', reason, workers.length)
    const start = async (worker: string) => {
      try {
        const driver = mode === 'External' ? undefined : poolDrivers[mode]
        if (!driver) throw new Error(`this controller does not start workers of mode ${mode}`)
        await driver.start(pool, worker, purposes.get(worker))
      } catch (thrown) {
        const message = `failed to start worker ${worker}: ${coerceError(thrown).message}`
        const failure = thrown instanceof StartError ? thrown.failure : ({ reason: 'CreateFailed', message } as const)
        this.#options.observe({ kind: 'StartFailed', pool: name, worker, failure })
      }
    }
    await Promise.all(workers.map(start))
  }

  #stop({ worker, force, reason }: Action<'StopProcess'>): void {
    if (reason === 'NoWorkerObject') this.#options.log.warn({ worker, force }, 'stopping a worker process that has no Worker object')
    for (const driver of Object.values(this.#options.poolDrivers)) driver.stop(worker, { force })
  }

  #reportStartFailure({ pool, name, failures, failure }: Action<'ReportStartFailure'>): void {
    const { metrics, log, events } = this.#options
    const { reason, message } = failure
    metrics.startFailed(name, reason)
    log.warn({ pool: name, failures, reason }, message)
    if (pool) events.warning(pool, reason, message)
  }

  async #drain({ object, pool, reason }: Action<'DrainWorker'>): Promise<void> {
    const { name, resourceVersion } = object
    const patch = { spec: { drain: true } }
    const outcome = await this.#write(object, () =>
      this.#workersClient.resource(workerResource).patch(name, patch, { type: 'merge', resourceVersion }),
    )
    if (outcome === 'Written') this.#options.metrics.scaled(pool, 'down', reason, 1)
  }

  async #confirmLoss({ worker, lease }: Action<'ConfirmLoss'>): Promise<void> {
    const { observe, shared, log } = this.#options
    try {
      const live = await this.#workersClient.resource(leaseResource).getOrUndefined(worker, { namespace: systemNamespace })
      const outcome = (await this.#deleteLease(live, lease)) ? 'Lost' : 'Renewed'
      if (outcome === 'Lost') log.warn({ worker }, 'worker is lost')
      const isUnwatched = live && shared && !shared.isWatched(worker)
      const renewed = outcome === 'Renewed' && isUnwatched && { lease: { ...workerLeaseOf(live), isOfWorker: false, isUnwatched } }
      observe({ kind: 'LossSettled', worker, outcome, ...renewed })
    } catch (thrown) {
      log.warn({ err: coerceError(thrown), worker }, 'failed to confirm the loss of a worker, retrying')
      observe({ kind: 'LossSettled', worker, outcome: 'Failed' })
    }
  }

  /** Returns false if the Lease was renewed, or may have been. */
  async #deleteLease(live: KubeObject<LeaseBody> | undefined, lease: Action<'ConfirmLoss'>['lease']): Promise<boolean> {
    if (lossOf(live?.metadata, lease) === 'Renewed') return false
    if (!live) return true
    const { name, uid, resourceVersion } = live.metadata
    try {
      await this.#workersClient
        .resource(leaseResource)
        .delete(name, { namespace: systemNamespace, preconditions: { uid, resourceVersion } })
    } catch (error) {
      if (isReason(error, 'Conflict')) return false
      if (!isReason(error, 'NotFound')) throw error
    }
    return true
  }

  async #failWorker({ object: { name, resourceVersion }, status }: Action<'FailWorker'>): Promise<void> {
    await this.#workersClient.resource(workerResource).patchStatus(name, { status }, { resourceVersion })
  }

  async #deleteWorker({ object }: Action<'DeleteWorker'>): Promise<void> {
    const { name, uid, resourceVersion } = object
    if (this.#options.shared) await this.#requireEnded(name)
    await this.#workersClient.resource(workerResource).delete(name, { preconditions: { uid, resourceVersion } })
  }

  /**
   * Other dispatchers end their own Runs of a lost worker. Before they have, no worker of this name may register: it could not tell that a Run was
   * started by another process.
   */
  async #requireEnded(worker: string): Promise<void> {
    const { items } = await this.#workersClient.resource(runResource).listAll({ fieldSelector: `spec.workerName=${worker}` })
    const active = items.find(run => !isEnded(run))
    if (active) throw new Error(`Run ${objectKey(active)} of worker ${worker} has not ended: its Worker is deleted after that`)
  }

  /** Those that remain are deleted one by one later. */
  async #deleteWorkers({ names }: Action<'DeleteWorkers'>): Promise<void> {
    try {
      await this.#workersClient.resource(workerResource).deleteCollection({ labelSelector: `${labels.worker} in (${names.join(',')})` })
    } catch (thrown) {
      this.#options.log.warn(
        { err: coerceError(thrown), workers: names.length },
        'failed to delete ended workers together, retrying one by one',
      )
    }
  }
}
