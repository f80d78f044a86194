import { labels, type WorkerPool } from '../../../../api/index.ts'
import { coerceError, type Informer, type Log, type Manager } from '../../../../kubernetes/controller/index.ts'
import { isReason, type StatusError } from '../../../../kubernetes/object/index.ts'
import { type DrivenWorker, type DriverListener, type PoolDriver, StartError } from '../pool-driver.ts'
import type { StartProblem } from '../start-state.ts'
import { makeWorkerPod, podNamespace, workerContainer } from './make-pod.ts'
import { type Pod, type PodBody, podResource, secretResource } from './pod.ts'
import { readPod } from './read-pod.ts'

/** Pods that ended well are of no use; of those that failed somebody may want to read the log. */
const keepSucceededMs = 60_000
const keepFailedMs = 10 * 60_000
/** Of one pool, the newest. */
const keptFailed = 10

export type PodWorkers = {
  /** Where the server is, such as OARLOCK_SERVER. */
  readonly environment: Readonly<Record<string, string>>
  /** Makes what a worker registers with; it is put into a Secret beside its Pod. Without it the Pod's service account is its credential. */
  readonly credentialOf?: (pool: WorkerPool, workerName: string) => Promise<string>
}

export type PodPoolParts = {
  readonly manager: Manager
  readonly log: Log
  readonly poolOf: (name: string) => WorkerPool | undefined
  readonly nowMs: () => number
  readonly workers: PodWorkers
}

/** Workers as Pods: made from the pool's template, watched until they end, and removed after a while. */
export class PodPool implements PoolDriver {
  readonly #parts: PodPoolParts
  readonly #pods: Informer<PodBody>
  #listener: DriverListener | undefined

  constructor(parts: PodPoolParts) {
    this.#parts = parts
    this.#pods = parts.manager.informer(podResource, { labelSelector: labels.pool })
    this.#pods.onChange({
      added: pod => this.#tell(pod),
      updated: (_, pod) => this.#tell(pod),
      deleted: pod => {
        if (this.#read(pod).state !== 'ended') this.#listener?.exited(pod.metadata.name, undefined)
      },
    })
  }

  listen(listener: DriverListener): void {
    this.#listener = listener
  }

  async start(pool: WorkerPool, workerName: string): Promise<void> {
    const { manager, workers } = this.#parts
    const { environment, credentialOf } = workers
    if (!pool.spec.template) {
      throw new StartError({ reason: 'StartRefused', message: `pool ${pool.metadata.name} is of mode Pod and has no spec.template` })
    }
    const plan = makeWorkerPod({ pool, workerName, environment, hasCredential: credentialOf !== undefined })
    const pods = manager.leaderClient.resource(podResource)
    let pod: Pod
    try {
      pod = await pods.create(plan as Parameters<typeof pods.create>[0])
    } catch (error) {
      // The name was claimed before: what is there was made by us, just before a crash or by a request whose answer was lost.
      if (!isReason(error, 'AlreadyExists')) throw refusal(workerName, error)
      pod = await pods.get(workerName, { namespace: podNamespace(pool) })
    }
    this.#pods.applyLocal(pod)
    if (credentialOf) await this.#giveCredential(pod, await credentialOf(pool, workerName))
  }

  running(): readonly DrivenWorker[] {
    return this.#pods.list().flatMap(pod => {
      const reading = this.#read(pod)
      if (reading.state !== 'starting' && reading.state !== 'running') return []
      const { name, labels: own, creationTimestamp } = pod.metadata
      const trouble = reading.state === 'starting' ? reading.trouble : undefined
      return [{ name, pool: own?.[labels.pool] ?? '', startedMs: Date.parse(creationTimestamp), trouble }]
    })
  }

  end(workerName: string): void {
    for (const pod of this.#pods.list()) if (pod.metadata.name === workerName) this.#delete(pod)
  }

  tidy(nowMs: number): number | undefined {
    let againInMs: number | undefined
    const failedOf = new Map<string, { pod: Pod; endedMs: number }[]>()
    const keep = (pod: Pod, untilMs: number) => {
      if (nowMs >= untilMs) this.#delete(pod)
      else againInMs = Math.min(againInMs ?? Number.POSITIVE_INFINITY, untilMs - nowMs)
    }
    for (const pod of this.#pods.list()) {
      const reading = this.#read(pod)
      if (reading.state !== 'ended' || pod.metadata.deletionTimestamp) continue
      const { endedMs } = reading
      if (!reading.trouble) keep(pod, endedMs + keepSucceededMs)
      else {
        const pool = pod.metadata.labels?.[labels.pool] ?? ''
        const others = failedOf.get(pool)
        if (others) others.push({ pod, endedMs })
        else failedOf.set(pool, [{ pod, endedMs }])
      }
    }
    for (const failed of failedOf.values()) {
      failed.sort((a, b) => b.endedMs - a.endedMs)
      for (const [index, { pod, endedMs }] of failed.entries()) keep(pod, index < keptFailed ? endedMs + keepFailedMs : 0)
    }
    return againInMs
  }

  #read(pod: Pod) {
    const pool = this.#parts.poolOf(pod.metadata.labels?.[labels.pool] ?? '')
    return readPod(pod, pool ? workerContainer(pool) : 'worker')
  }

  #tell(pod: Pod): void {
    const reading = this.#read(pod)
    const { name } = pod.metadata
    if (reading.state === 'ended') this.#listener?.exited(name, reading.exitCode, reading.trouble)
    else if (reading.state !== 'leaving') this.#listener?.troubled(name, reading.state === 'starting' ? reading.trouble : undefined)
  }

  async #giveCredential({ apiVersion, kind, metadata }: Pod, token: string): Promise<void> {
    const { name, namespace, uid } = metadata
    const secrets = this.#parts.manager.leaderClient.resource(secretResource)
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
    const { name, namespace, uid } = metadata
    this.#parts.manager.leaderClient
      .resource(podResource)
      .delete(name, { namespace, preconditions: { uid } })
      .catch((thrown: unknown) => {
        if (!isReason(thrown, 'NotFound', 'Conflict'))
          this.#parts.log.warn({ err: coerceError(thrown), pod: name }, 'pod could not be deleted')
      })
  }
}

/** kube-apiserver refuses what exceeds a ResourceQuota with Forbidden and says so in the message only. */
function refusal(workerName: string, error: unknown): unknown {
  if (!isReason(error, 'Forbidden', 'Invalid', 'NotFound', 'BadRequest')) return error
  const { message } = error as StatusError
  const reason: StartProblem = /exceeded quota/.test(message) ? 'QuotaExceeded' : 'StartRefused'
  return new StartError({ reason, message: `pod of worker ${workerName}: ${message}` }, { cause: error })
}
