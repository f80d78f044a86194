import { crashReasons, hasRegistered, isHostRequested, labels, type Worker, type WorkerPool, workerResource } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { type ChangingSelector, coerceError, type Informer, type Log, type Manager } from '../../../kubernetes/controller/index.ts'
import { isReason, type StatusError } from '../../../kubernetes/object/index.ts'
import { decideRequestGarbage } from './decide-request-garbage.ts'
import { type DriverListener, type DriverWorker, type ExitFailure, type PoolDriver, StartError } from './pool-driver.ts'
import type { StartFailureReason } from './start-state.ts'

export type RequestedPoolDependencies = {
  readonly manager: Manager
  readonly log: Log
  readonly nowMs: () => number
  /** Where the Workers are. Default: on the manager's own server. */
  readonly shared?: { readonly cluster: string; readonly selector: ChangingSelector } | undefined
}

/**
 * Requests workers as Worker objects with `spec.start`, which `oarlock pool` on any host claims and starts. All that is known about the process is
 * the status of its Worker: `Starting`, then registered, or `Failed`. The names are claimed in the status of the pool, so that a request is never
 * created twice for one decision.
 */
export class RequestedPool implements PoolDriver {
  readonly claimsNames = true
  readonly #dependencies: RequestedPoolDependencies
  readonly #workers: Informer<{ spec: Worker['spec']; status?: Worker['status'] }>
  #listener: DriverListener | undefined

  constructor(dependencies: RequestedPoolDependencies) {
    this.#dependencies = dependencies
    const { cluster, selector } = dependencies.shared ?? {}
    this.#workers = dependencies.manager.informer(workerResource, {
      ...{ cluster, selector },
      indexes: { requested: worker => (isHostRequested(worker) ? ['yes'] : []) },
    })
    this.#workers.onChange({
      // Another leader may have requested it.
      added: worker => {
        if (isHostRequested(worker) && worker.status?.phase !== 'Failed') this.#listener?.observed(driverWorkerOf(worker))
      },
      updated: (old, worker) => {
        if (!worker.spec.start || worker.spec.pod || old.status?.phase === worker.status?.phase) return
        if (worker.status?.phase === 'Failed') this.#listener?.exited(worker.metadata.name, worker.status.exitCode, failureOf(worker))
        else this.#listener?.observed({ ...driverWorkerOf(worker), isReleased: hasRegistered(worker) })
      },
      deleted: worker => {
        if (worker.spec.start && !worker.spec.pod) this.#listener?.observed({ ...driverWorkerOf(worker), isReleased: true })
      },
    })
  }

  listen(listener: DriverListener): void {
    this.#listener = listener
  }

  async start(pool: WorkerPool, workerName: string): Promise<void> {
    const { name } = pool.metadata
    const { slots = 1, lifecycle = 'OneShot' } = pool.spec
    try {
      const worker = await this.#client.resource(workerResource).create({
        metadata: { name: workerName, labels: { [labels.pool]: name } },
        spec: { pool: name, slots, lifecycle, start: true },
      })
      this.#workers.applyLocal(worker)
    } catch (error) {
      // The name was claimed, so this controller created the Worker: by a request whose response was lost.
      if (isReason(error, 'AlreadyExists')) return
      if (!isReason(error, 'Forbidden', 'Invalid', 'BadRequest', 'NotFound')) throw error
      const message = `request for worker ${workerName}: ${(error as StatusError).message}`
      throw new StartError({ reason: 'CreateFailed', message }, { cause: error })
    }
  }

  /** Requests that have not been fulfilled. A registered worker is known by its Worker and its Lease. */
  running(): readonly DriverWorker[] {
    return this.#requests().flatMap(worker => (worker.status?.phase === 'Failed' ? [] : [driverWorkerOf(worker)]))
  }

  /** Withdraws a request; the host stops the process, if there is one. Has no effect on a worker that has registered. */
  stop(workerName: string): void {
    const worker = this.#workers.get(workerName)
    if (worker && isHostRequested(worker)) this.#delete(worker)
  }

  /** Deletes failed requests, whose failure the pool reports by now, and reports those that no host claims. */
  collectGarbage(nowMs: number): number | undefined {
    const { remove, unclaimed, requeueAfterMs } = decideRequestGarbage(this.#requests(), nowMs)
    for (const worker of remove) this.#delete(worker)
    for (const { worker, failure } of unclaimed) this.#listener?.observed({ ...driverWorkerOf(worker), failure })
    return requeueAfterMs
  }

  get #client(): Client {
    const { manager, shared } = this.#dependencies
    return manager.leaderClientOf(shared?.cluster)
  }

  #requests(): readonly Worker[] {
    return this.#workers.byIndex('requested', 'yes')
  }

  /** A Worker that has changed since is not deleted: it may have registered. */
  #delete({ metadata: { name, uid, resourceVersion } }: Worker): void {
    this.#client
      .resource(workerResource)
      .delete(name, { preconditions: { uid, resourceVersion } })
      .catch((thrown: unknown) => {
        if (!isReason(thrown, 'NotFound', 'Conflict'))
          this.#dependencies.log.warn({ err: coerceError(thrown), worker: name }, 'failed to delete the request for a worker')
      })
  }
}

const driverWorkerOf = ({ metadata: { name, creationTimestamp }, spec: { pool } }: Worker): DriverWorker => ({
  name,
  pool,
  startedMs: Date.parse(creationTimestamp),
})

/** Undefined if the host reports neither a known reason nor a message. */
function failureOf({ metadata, status }: Worker): ExitFailure | undefined {
  const reason = failureReasons.find(known => known === status?.reason)
  const crash = crashReasons.find(known => known === status?.reason)
  if (reason === undefined && status?.message === undefined) return undefined
  const message = status?.message ?? `worker ${metadata.name} failed`
  return { reason, message, ...(crash && { crash: { reason: crash, message } }) }
}

const failureReasons: readonly StartFailureReason[] = ['CreateFailed', 'CredentialRejected', 'CrashedOnStartup', 'RegistrationFailed']
