import { setTimeout as sleep } from 'node:timers/promises'
import { labels, type Run, runResource, systemNamespace } from '../../src/api/index.ts'
import { parseHollowProfile } from '../../src/execution/worker/hollow/profile.ts'
import { simulateRun } from '../../src/execution/worker/hollow/simulate-run.ts'
import { leaseRenewal } from '../../src/execution/worker/lease/lease-renewal.ts'
import { patchWorkerStatus, recordPod, register, type WorkerStatusPatch } from '../../src/execution/worker/lease/registration.ts'
import { RunReporter } from '../../src/execution/worker/run/run-reporter.ts'
import { WorkerStatusReporter } from '../../src/execution/worker/worker-status-reporter.ts'
import { type Client, createClient, leaseResource, listWatch } from '../../src/kubernetes/client/index.ts'
import { describeResource, type KubeObject, rfc3339 } from '../../src/kubernetes/object/index.ts'

export type PodBody = { spec?: { serviceAccountName?: string; nodeName?: string }; status?: { phase?: string } }
export const podResource = describeResource<PodBody>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', scope: 'Namespaced' })

export type HollowPodsOptions = {
  /** An administrator, for what a kubelet does. */
  readonly client: Client
  readonly server: string
  readonly caCertificate: string
}

/** As for a real worker Pod. */
const [leaseMs, renewMs] = [60_000, 2_000]

/**
 * Acts as the OneShot workers of Pods that a kubelet reports as running, each with the token of its Pod, so that the policies apply. Registration, status,
 * renewals and the reports of the Run are those of a real worker; no engine runs. Afterwards the Pod is reported as succeeded, as a kubelet does, and the
 * controller deletes the Worker.
 */
export class HollowPods {
  readonly errors: string[] = []
  readonly #options: HollowPodsOptions
  readonly #stopping = new AbortController()
  readonly #seen = new Set<string>()
  readonly #working = new Set<Promise<void>>()
  readonly #watches: Promise<void>[] = []
  /** By name of the worker. */
  readonly #assigned = new Map<string, PromiseWithResolvers<Run>>()

  constructor(options: HollowPodsOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { client } = this.#options
    const { signal } = this.#stopping
    const onError = (error: unknown) => this.#fail(error)
    const watch = { signal, onError, backoff: { minMs: 200, maxMs: 2_000 } }
    this.#watches.push(
      listWatch(client, podResource, {
        ...{ ...watch, namespace: systemNamespace, labelSelector: labels.pool },
        onReplace: pods => pods.forEach(pod => void this.#onPod(pod)),
        onEvent: ({ type, object }) => type !== 'BOOKMARK' && this.#onPod(object),
      }),
      // One watch for all of them, where each real worker has its own.
      listWatch(client, runResource, {
        ...{ ...watch, fieldSelector: 'spec.workerName!=' },
        onReplace: runs => runs.forEach(run => void this.#onRun(run)),
        onEvent: ({ type, object }) => type !== 'BOOKMARK' && this.#onRun(object),
      }),
    )
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([...this.#watches, ...this.#working])
  }

  #onPod(pod: KubeObject<PodBody>): void {
    const { uid, deletionTimestamp } = pod.metadata
    if (pod.status?.phase !== 'Running' || deletionTimestamp !== undefined || this.#seen.has(uid)) return
    this.#seen.add(uid)
    const work = this.#work(pod)
      .catch((error: unknown) => this.#fail(error))
      .finally(() => this.#working.delete(work))
    this.#working.add(work)
  }

  #onRun(run: Run): void {
    if (run.spec.workerName !== undefined && run.status?.finishedAt === undefined) this.#assignment(run.spec.workerName).resolve(run)
  }

  #assignment(worker: string): PromiseWithResolvers<Run> {
    const known = this.#assigned.get(worker) ?? Promise.withResolvers<Run>()
    this.#assigned.set(worker, known)
    return known
  }

  async #work({ metadata, spec }: KubeObject<PodBody>): Promise<void> {
    const { name, namespace = '', uid: podUid, ownerReferences } = metadata
    const workerUid = ownerReferences?.[0]?.uid ?? ''
    const client = await this.#clientOf({ name, namespace, uid: podUid }, spec?.serviceAccountName ?? 'oarlock-worker')
    let renewal: NodeJS.Timeout | undefined
    try {
      let renewedAtMs = performance.now()
      const registered: WorkerStatusPatch = { phase: 'Ready', runs: [], host: name, pid: 1, isolation: ['Pod'], version: 'hollow' }
      const identity = { name, pool: metadata.labels?.[labels.pool] ?? '', slots: 1, lifecycle: 'OneShot', labels: {} } as const
      const registration = await register(client, { ...identity, leaseDurationMs: leaseMs, workerUid, podUid, statusInLease: registered })
      const renew = async () => {
        const sentAtMs = performance.now()
        const patch = leaseRenewal(registration.leaseUid, Date.now())
        await client.resource(leaseResource).patch(name, patch, { type: 'merge', namespace: systemNamespace })
        renewedAtMs = sentAtMs
      }
      renewal = setInterval(() => void renew().catch((error: unknown) => this.#fail(error)), renewMs)
      const active: string[] = []
      const idleSinceMs = Date.now()
      let isRecorded = false
      const status = new WorkerStatusReporter(
        () => ({ runs: active, idleSinceMs: active.length > 0 ? undefined : idleSinceMs }),
        async report => {
          if (!isRecorded) await recordPod(client, name, workerUid, podUid)
          isRecorded = true
          await patchWorkerStatus(client, name, { ...registered, idleSince: rfc3339(idleSinceMs), ...report })
        },
        error => this.#fail(error),
      )
      status.schedule()
      const run = await Promise.race([this.#assignment(name).promise, sleep(300_000, undefined, { ref: false })])
      this.#assigned.delete(name)
      if (run) {
        active.push(`${run.metadata.namespace}/${run.metadata.name}`)
        const reporter = new RunReporter({ client, run, workerName: name, mayWrite: () => performance.now() - renewedAtMs < 0.9 * leaseMs })
        await simulateRun({ reporter, profile: parseHollowProfile({}), random: Math.random, sleep: ms => sleep(ms) })
      } else this.#fail(new Error(`${name} got no Run`))
      await status.close()
    } finally {
      clearInterval(renewal)
      await client.close()
      await this.#reportEnd(name, namespace)
    }
  }

  async #reportEnd(name: string, namespace: string): Promise<void> {
    const finishedAt = rfc3339(Date.now())
    const terminated = { exitCode: 0, reason: 'Completed', startedAt: finishedAt, finishedAt }
    const containerStatuses = [
      { name: 'worker', image: 'oarlock:hollow', imageID: '', ready: false, restartCount: 0, state: { terminated } },
    ]
    const status = { phase: 'Succeeded', containerStatuses } as NonNullable<PodBody['status']>
    // The garbage collector may have deleted it.
    await this.#options.client
      .resource(podResource)
      .patchStatus(name, { status }, { namespace })
      .catch(() => undefined)
  }

  async #clientOf(pod: { name: string; namespace: string; uid: string }, account: string): Promise<Client> {
    const { client, server, caCertificate } = this.#options
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid }
    const response = await client.request({
      method: 'POST',
      path: `/api/v1/namespaces/${pod.namespace}/serviceaccounts/${account}/token`,
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3_600, boundObjectRef } },
    })
    const { status } = (await response.json()) as { status: { token: string } }
    return await createClient({ cluster: { server, caCertificate, token: status.token }, fieldManager: 'oarlock', connections: 2 })
  }

  #fail(error: unknown): void {
    if (!this.#stopping.signal.aborted) this.errors.push(String((error as Error)?.message ?? error))
  }
}
