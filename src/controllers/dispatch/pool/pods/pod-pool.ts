import {
  hasRegistered,
  isStartRequested,
  labels,
  systemNamespace,
  type Worker,
  type WorkerPool,
  workerResource,
} from '../../../../api/index.ts'
import { leaseResource } from '../../../../kubernetes/client/index.ts'
import { coerceError, type Informer, type Log, type Manager } from '../../../../kubernetes/controller/index.ts'
import { isReason, type StatusError } from '../../../../kubernetes/object/index.ts'
import {
  type DriverListener,
  type DriverWorker,
  type ExitFailure,
  type PoolDriver,
  StartError,
  type WorkerExit,
  type WorkerPurpose,
} from '../pool-driver.ts'
import type { StartFailureReason } from '../start-state.ts'
import { failedStatus, type WorkerReport } from '../worker-report.ts'
import { decideWorkerPods } from './decide-worker-pods.ts'
import { isWorkerPod } from './is-worker-pod.ts'
import { LeaseRegistrations } from './lease-registrations.ts'
import { makeWorker, makeWorkerPod, workerContainer } from './make-pod.ts'
import { type Pod, type PodBody, podResource } from './pod.ts'
import { workerPodState } from './worker-pod-state.ts'

export type PodWorkerOptions = {
  /** The addresses that a worker needs, such as OARLOCK_SERVER. Empty: those of the cluster that its Pod runs in. */
  readonly environment: Readonly<Record<string, string>>
}

export type PodPoolDependencies = {
  readonly manager: Manager
  readonly log: Log
  readonly poolOf: (name: string) => WorkerPool | undefined
  readonly nowMs: () => number
  readonly workers: PodWorkerOptions
}

/**
 * Creates for each worker a Worker and then its Pod, from the pool's template; watches the Pods until they end, and deletes both some time later. The
 * Worker owns the Pod. A Worker without a Pod, which a process leaves that ends between the two, gets it later.
 */
export class PodPool implements PoolDriver {
  readonly claimsNames = true
  readonly #dependencies: PodPoolDependencies
  readonly #pods: Informer<PodBody>
  readonly #workers: Informer<{ spec: Worker['spec']; status?: Worker['status'] }>
  readonly #registrations: LeaseRegistrations
  /** Workers that are being created, or whose status or Pod is being written. */
  readonly #writing = new Set<string>()
  /** Workers whose Pod was deleted before they registered. */
  readonly #deleted = new Map<string, ExitFailure>()
  #listener: DriverListener | undefined

  constructor(dependencies: PodPoolDependencies) {
    this.#dependencies = dependencies
    const { manager } = dependencies
    this.#workers = manager.informer(workerResource, { indexes: { pod: ({ spec }) => (spec?.pod ? ['yes'] : []) } })
    this.#registrations = new LeaseRegistrations(manager.informer(leaseResource, { namespace: systemNamespace }), this.#workers)
    this.#pods = manager.informer(podResource, { labelSelector: labels.pool })
    this.#pods.onChange({
      added: pod => this.#isOwn(pod) && this.#notify(pod),
      updated: (_, pod) => this.#isOwn(pod) && this.#notify(pod),
      deleted: pod => this.#isOwn(pod) && this.#onPodDeleted(pod),
    })
    this.#workers.onChange({
      deleted: worker => {
        const { name } = worker.metadata
        this.#deleted.delete(name)
        if (worker.spec.pod && !this.#podOf(worker)) this.#listener?.observed({ ...driverWorkerOf(worker), isReleased: true })
      },
    })
  }

  listen(listener: DriverListener): void {
    this.#listener = listener
  }

  async start(pool: WorkerPool, workerName: string, purpose?: WorkerPurpose): Promise<void> {
    const { name } = pool.metadata
    if (!pool.spec.template) throw new StartError({ reason: 'CreateFailed', message: `pool ${name} has mode Pod and no spec.template` })
    this.#writing.add(workerName)
    try {
      const worker = await this.#createWorker(pool, workerName, purpose)
      await this.#createPod(pool, worker)
    } finally {
      this.#writing.delete(workerName)
    }
  }

  /** Pods that have not ended, and Workers that have no Pod yet. */
  running(): readonly DriverWorker[] {
    const pods = this.#ownPods().flatMap(pod => this.#runningWorker(pod) ?? [])
    const requests = this.#ownWorkers().filter(worker => isStartRequested(worker) && worker.status?.phase !== 'Failed')
    return [...pods, ...requests.filter(worker => !this.#podOf(worker)).map(driverWorkerOf)]
  }

  ended(): readonly WorkerExit[] {
    return this.#ownPods().flatMap(pod => {
      const state = this.#stateOf(pod)
      return state.state === 'ended' ? [{ worker: pod.metadata.name, exitCode: state.exitCode, failure: state.failure }] : []
    })
  }

  /** Withdraws a Worker that has not registered, and with it its Pod; without a Worker deletes the Pod. */
  stop(workerName: string): void {
    const worker = this.#workers.get(workerName)
    if (worker?.spec.pod && isStartRequested(this.registered(worker))) this.#deleteWorker(worker)
    else if (!worker) for (const pod of this.#ownPods()) if (pod.metadata.name === workerName) this.#deletePod(pod)
  }

  collectGarbage(nowMs: number): number | undefined {
    const pods = this.#ownPods().map(pod => ({ pod, state: this.#stateOf(pod) }))
    const hasPool = (name: string) => this.#dependencies.poolOf(name) !== undefined
    const decision = decideWorkerPods({ workers: this.#ownWorkers(), pods, deleted: this.#deleted, hasPool, nowMs })
    const { create, report, remove, removePods, requeueAfterMs } = decision
    for (const worker of create) this.#write(worker, 'failed to create the Pod of a worker', () => this.#createMissingPod(worker))
    for (const { worker, status } of report)
      this.#write(worker, 'failed to report the start of a worker', () => this.#patchStatus(worker, status))
    for (const worker of remove) this.#deleteWorker(worker)
    for (const pod of removePods) this.#deletePod(pod)
    return requeueAfterMs
  }

  /** The Worker, registered also if only its Lease registers it. */
  registered(worker: Worker): Worker {
    return this.#registrations.of(worker, () => this.#podOf(worker)?.metadata.uid)
  }

  // ---- observations

  #ownWorkers(): readonly Worker[] {
    return this.#workers.byIndex('pod', 'yes').map(worker => this.registered(worker))
  }

  #ownPods(): readonly Pod[] {
    return this.#pods.list().filter(pod => this.#isOwn(pod))
  }

  #isOwn(pod: Pod): boolean {
    const pool = this.#dependencies.poolOf(pod.metadata.labels?.[labels.pool] ?? '')
    return isWorkerPod(pod, { worker: this.#workers.get(pod.metadata.name), pool })
  }

  #podOf({ metadata: { name }, spec }: Worker): Pod | undefined {
    const pod = spec.pod && this.#pods.get(`${spec.pod.namespace}/${name}`)
    return pod && this.#isOwn(pod) ? pod : undefined
  }

  #stateOf(pod: Pod) {
    const pool = this.#dependencies.poolOf(pod.metadata.labels?.[labels.pool] ?? '')
    return workerPodState(pod, pool ? workerContainer(pool) : 'worker')
  }

  #notify(pod: Pod): void {
    const state = this.#stateOf(pod)
    if (state.state === 'ended') this.#listener?.exited(pod.metadata.name, state.exitCode, state.failure)
    else {
      const running = this.#runningWorker(pod)
      if (running) this.#listener?.observed(running)
    }
  }

  #onPodDeleted(pod: Pod): void {
    const { name, namespace } = pod.metadata
    const state = this.#stateOf(pod)
    if (state.state === 'ended') return
    const known = state.state === 'terminating' ? state.failure : undefined
    const cause = { reason: 'PodDeleted', message: `Pod ${namespace}/${name} was deleted` } as const
    const failure = known ?? { ...cause, loss: cause }
    const worker = this.#workers.get(name)
    // It would be created again: the number of a worker is used once.
    if (worker && !hasRegistered(this.registered(worker))) this.#deleted.set(name, failure)
    this.#listener?.exited(name, undefined, failure)
  }

  /** Undefined if the Pod has ended. */
  #runningWorker(pod: Pod): DriverWorker | undefined {
    const state = this.#stateOf(pod)
    if (state.state === 'ended') return undefined
    const { name, labels: own, creationTimestamp } = pod.metadata
    const failure = state.state === 'starting' ? state.failure : undefined
    const isReleased = state.state === 'terminating'
    const trustDomain = this.#workers.get(name)?.spec.trustDomain
    return { name, pool: own?.[labels.pool] ?? '', startedMs: Date.parse(creationTimestamp), failure, trustDomain, isReleased }
  }

  // ---- writes

  async #createWorker(pool: WorkerPool, workerName: string, purpose: WorkerPurpose | undefined): Promise<Worker> {
    const workers = this.#dependencies.manager.leaderClient.resource(workerResource)
    let worker: Worker
    try {
      worker = await workers.create(makeWorker(pool, workerName, purpose))
    } catch (error) {
      // The name was claimed, so this controller created the Worker: by a request whose response was lost.
      if (!isReason(error, 'AlreadyExists')) throw startErrorOf(`Worker ${workerName}`, error)
      worker = await workers.get(workerName)
    }
    this.#workers.applyLocal(worker)
    return worker
  }

  async #createPod(pool: WorkerPool, worker: Worker): Promise<void> {
    const { environment } = this.#dependencies.workers
    const { name } = worker.metadata
    try {
      this.#pods.applyLocal(await this.#createOrGetPod(worker, makeWorkerPod({ pool, worker, environment })))
    } catch (thrown) {
      // It remains for some time and shows the reason; it would get its Pod later otherwise.
      const error = startErrorOf(`Pod ${worker.spec.pod?.namespace}/${name}`, thrown)
      const failure = error instanceof StartError ? error.failure : { reason: 'CreateFailed' as const, message: error.message }
      await this.#patchStatus(worker, failedStatus(failure, undefined))
      throw error
    }
  }

  async #createOrGetPod(worker: Worker, plan: ReturnType<typeof makeWorkerPod>): Promise<Pod> {
    const pods = this.#dependencies.manager.leaderClient.resource(podResource)
    try {
      return await pods.create(plan as Parameters<typeof pods.create>[0])
    } catch (error) {
      if (!isReason(error, 'AlreadyExists')) throw error
      const { name, namespace } = plan.metadata
      const pod = await pods.get(name, { namespace })
      // By a request whose response was lost. A Pod that a user has created would act for the worker.
      if (pod.metadata.ownerReferences?.some(({ uid }) => uid === worker.metadata.uid)) return pod
      const message = `Pod ${namespace}/${name} already exists and is not owned by its worker: delete it`
      throw new StartError({ reason: 'CreateFailed', message }, { cause: error })
    }
  }

  async #createMissingPod(worker: Worker): Promise<void> {
    const pool = this.#dependencies.poolOf(worker.spec.pool)
    // Without its pool the Worker is deleted.
    if (pool) await this.#createPod(pool, worker)
  }

  async #patchStatus({ metadata: { name, resourceVersion } }: Worker, status: WorkerReport): Promise<void> {
    const workers = this.#dependencies.manager.leaderClient.resource(workerResource)
    this.#workers.applyLocal(await workers.patchStatus(name, { status }, { resourceVersion }))
  }

  /** One write of a Worker at a time. What fails is decided again. */
  #write({ metadata: { name } }: Worker, problem: string, write: () => Promise<unknown>): void {
    if (this.#writing.has(name)) return
    this.#writing.add(name)
    write()
      .catch((thrown: unknown) => {
        if (!isReason(thrown, 'NotFound', 'Conflict')) this.#dependencies.log.warn({ err: coerceError(thrown), worker: name }, problem)
      })
      .finally(() => this.#writing.delete(name))
  }

  /** A Worker that has changed since is not deleted: it may have registered. */
  #deleteWorker(worker: Worker): void {
    const { name, uid, resourceVersion } = worker.metadata
    this.#write(worker, 'failed to delete the Worker of a Pod', () =>
      this.#dependencies.manager.leaderClient.resource(workerResource).delete(name, { preconditions: { uid, resourceVersion } }),
    )
  }

  #deletePod({ metadata }: Pod): void {
    const { name, namespace, uid, resourceVersion } = metadata
    // A Pod that has changed since is decided again: it may have registered or ended.
    this.#dependencies.manager.leaderClient
      .resource(podResource)
      .delete(name, { namespace, preconditions: { uid, resourceVersion } })
      .catch((thrown: unknown) => {
        if (!isReason(thrown, 'NotFound', 'Conflict'))
          this.#dependencies.log.warn({ err: coerceError(thrown), pod: name }, 'failed to delete a Pod')
      })
  }
}

const driverWorkerOf = ({ metadata: { name, creationTimestamp }, spec: { pool, trustDomain } }: Worker): DriverWorker => ({
  name,
  pool,
  trustDomain,
  startedMs: Date.parse(creationTimestamp),
})

/** kube-apiserver rejects a Pod that exceeds a ResourceQuota with Forbidden; only the message distinguishes it from other errors. */
function startErrorOf(object: string, thrown: unknown): Error {
  const error = coerceError(thrown)
  if (error instanceof StartError || !isReason(thrown, 'Forbidden', 'Invalid', 'NotFound', 'BadRequest')) return error
  const { message } = thrown as StatusError
  const reason: StartFailureReason = /exceeded quota/.test(message) ? 'QuotaExceeded' : 'CreateFailed'
  return new StartError({ reason, message: `${object}: ${message}` }, { cause: error })
}
