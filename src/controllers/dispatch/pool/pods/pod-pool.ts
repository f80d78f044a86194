import { labels, type WorkerPool } from '../../../../api/index.ts'
import { type Client, secretResource } from '../../../../kubernetes/client/index.ts'
import { coerceError, type Informer, type Log, type Manager } from '../../../../kubernetes/controller/index.ts'
import { isReason, type StatusError } from '../../../../kubernetes/object/index.ts'
import { type DriverListener, type DriverWorker, type PoolDriver, StartError } from '../pool-driver.ts'
import type { StartFailureReason } from '../start-state.ts'
import { decidePodGarbage } from './decide-pod-garbage.ts'
import { makeWorkerPod, podNamespace, workerContainer } from './make-pod.ts'
import { type Pod, type PodBody, podResource } from './pod.ts'
import { workerPodState } from './worker-pod-state.ts'

export type PodWorkerOptions = {
  /** The addresses that a worker needs, such as OARLOCK_SERVER. Called for each Pod: they may change. */
  environment(): Promise<Readonly<Record<string, string>>>
  /** Creates the token that a worker registers with, stored in a Secret that its Pod owns. Default: the Pod's service account is the credential. */
  readonly credentialOf?: (pool: WorkerPool, workerName: string, client: Client) => Promise<string>
}

export type PodPoolDependencies = {
  readonly manager: Manager
  readonly log: Log
  readonly poolOf: (name: string) => WorkerPool | undefined
  readonly nowMs: () => number
  readonly workers: PodWorkerOptions
}

/** Creates Pods from the pool's template, watches them until they end, and deletes them some time later. */
export class PodPool implements PoolDriver {
  readonly claimsNames = true
  readonly #dependencies: PodPoolDependencies
  readonly #pods: Informer<PodBody>
  #listener: DriverListener | undefined

  constructor(dependencies: PodPoolDependencies) {
    this.#dependencies = dependencies
    this.#pods = dependencies.manager.informer(podResource, { labelSelector: labels.pool })
    this.#pods.onChange({
      added: pod => this.#notify(pod),
      updated: (_, pod) => this.#notify(pod),
      deleted: pod => {
        if (this.#stateOf(pod).state !== 'ended') this.#listener?.exited(pod.metadata.name, undefined)
      },
    })
  }

  listen(listener: DriverListener): void {
    this.#listener = listener
  }

  async start(pool: WorkerPool, workerName: string): Promise<void> {
    const { manager, workers } = this.#dependencies
    const { environment, credentialOf } = workers
    if (!pool.spec.template) {
      throw new StartError({ reason: 'CreateFailed', message: `pool ${pool.metadata.name} has mode Pod and no spec.template` })
    }
    const plan = makeWorkerPod({ pool, workerName, environment: await environment(), hasCredential: credentialOf !== undefined })
    // First: a Pod that waits for the Secret of a credential that cannot be issued would never start.
    const credential = await credentialOf?.(pool, workerName, manager.leaderClient)
    const pods = manager.leaderClient.resource(podResource)
    let pod: Pod
    try {
      pod = await pods.create(plan as Parameters<typeof pods.create>[0])
    } catch (error) {
      // The name was claimed, so this controller created the Pod: before a crash, or by a request whose response was lost.
      if (!isReason(error, 'AlreadyExists')) throw startErrorOf(workerName, error)
      pod = await pods.get(workerName, { namespace: podNamespace(pool) })
    }
    this.#pods.applyLocal(pod)
    if (credential !== undefined) await this.#createCredentialSecret(pod, credential)
  }

  running(): readonly DriverWorker[] {
    return this.#pods.list().flatMap(pod => this.#runningWorker(pod) ?? [])
  }

  stop(workerName: string): void {
    for (const pod of this.#pods.list()) if (pod.metadata.name === workerName) this.#delete(pod)
  }

  collectGarbage(nowMs: number): number | undefined {
    const pods = this.#pods.list().map(pod => ({ pod, state: this.#stateOf(pod) }))
    const { remove, requeueAfterMs } = decidePodGarbage(pods, nowMs)
    for (const pod of remove) this.#delete(pod)
    return requeueAfterMs
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

  /** Undefined if the Pod has ended. */
  #runningWorker(pod: Pod): DriverWorker | undefined {
    const state = this.#stateOf(pod)
    if (state.state === 'ended') return undefined
    const { name, labels: own, creationTimestamp } = pod.metadata
    const failure = state.state === 'starting' ? state.failure : undefined
    const isReleased = state.state === 'terminating'
    return { name, pool: own?.[labels.pool] ?? '', startedMs: Date.parse(creationTimestamp), failure, isReleased }
  }

  async #createCredentialSecret({ apiVersion, kind, metadata }: Pod, token: string): Promise<void> {
    const { name, namespace, uid } = metadata
    const secrets = this.#dependencies.manager.leaderClient.resource(secretResource)
    try {
      await secrets.create({
        metadata: { name, namespace, ownerReferences: [{ apiVersion, kind, name, uid }] },
        type: 'oarlock.dev/worker-token',
        stringData: { token },
      })
    } catch (error) {
      if (!isReason(error, 'AlreadyExists')) throw error
    }
  }

  #delete({ metadata }: Pod): void {
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

/** kube-apiserver rejects a Pod that exceeds a ResourceQuota with Forbidden; only the message distinguishes it from other errors. */
function startErrorOf(workerName: string, error: unknown): unknown {
  if (!isReason(error, 'Forbidden', 'Invalid', 'NotFound', 'BadRequest')) return error
  const { message } = error as StatusError
  const reason: StartFailureReason = /exceeded quota/.test(message) ? 'QuotaExceeded' : 'CreateFailed'
  return new StartError({ reason, message: `pod of worker ${workerName}: ${message}` }, { cause: error })
}
