import { labels, type Run, type RunStatus, runResource, systemNamespace, type WorkerPool, workerResource } from '../../src/api/index.ts'
import type { DriverListener, PoolDriver } from '../../src/controllers/dispatch/index.ts'
import { type Client, leaseResource } from '../../src/kubernetes/client/index.ts'
import { isReason, rfc3339, rfc3339Micro } from '../../src/kubernetes/object/index.ts'

/**
 * How a scripted worker executes a Run. `status`: it reports this result. `block`: it remains in phase Applying until the Run is canceled. `crash`: it
 * stops reporting and renewing.
 */
export type RunScript = { status: Omit<Partial<RunStatus>, 'phase'> & { phase: 'Succeeded' | 'Failed' } } | 'block' | 'crash'

export const succeeds = (outputs?: string, add = 1): RunScript => ({
  status: {
    phase: 'Succeeded',
    changed: add > 0,
    plan: { digest: `sha256:${outputs ?? 'plan'}`, add, change: 0, destroy: 0 },
    resources: add,
    ...(outputs && { outputs: { value: outputs }, outputsDigest: `sha256:${outputs}` }),
  },
})

/**
 * Workers that register, renew and report through the real API, like `oarlock worker`, with a script in place of an engine. As a
 * {@link PoolDriver} it starts them in this process.
 */
export class ScriptedWorkers implements PoolDriver {
  readonly #client: Client
  readonly #renewEveryMs: number
  readonly #running = new Map<string, { pool: string; stop: AbortController }>()
  readonly #ended: Promise<void>[] = []
  #listener: DriverListener | undefined
  /** Chooses the script of each Run. A promise keeps the Run in phase Applying until it resolves. */
  script: (run: Run) => RunScript | Promise<RunScript> = () => succeeds()
  /** If set, starting a worker fails with this error. */
  startError: Error | undefined
  /** Accepted Runs in order. */
  readonly accepted: Run[] = []

  constructor(client: Client, renewEveryMs: number) {
    this.#client = client
    this.#renewEveryMs = renewEveryMs
  }

  async start(pool: WorkerPool, workerName: string): Promise<void> {
    if (this.startError) throw this.startError
    const stop = new AbortController()
    this.#running.set(workerName, { pool: pool.metadata.name, stop })
    this.#ended.push(this.#work(pool.metadata.name, workerName, stop))
  }

  running() {
    return [...this.#running].map(([name, { pool }]) => ({ name, pool }))
  }

  stop(workerName: string): void {
    this.#running.get(workerName)?.stop.abort()
  }

  listen(listener: DriverListener): void {
    this.#listener = listener
  }

  async close(): Promise<void> {
    for (const { stop } of this.#running.values()) stop.abort()
    await Promise.all(this.#ended)
  }

  async #work(pool: string, name: string, stop: AbortController): Promise<void> {
    const { signal } = stop
    const leases = this.#client.resource(leaseResource)
    const workers = this.#client.resource(workerResource)
    const metadata = { name, labels: { [labels.pool]: pool } }
    const spec = { holderIdentity: name, leaseDurationSeconds: 10 }
    let exitCode: number | undefined = 0
    try {
      await leases.create({ metadata: { ...metadata, namespace: systemNamespace }, spec: { ...spec, renewTime: rfc3339Micro(Date.now()) } })
      await workers.create({ metadata, spec: { pool, slots: 1, lifecycle: 'OneShot' } })
      await workers.patchStatus(name, { status: { phase: 'Ready' } })
      const renewing = setInterval(() => {
        const patch = { spec: { renewTime: rfc3339Micro(Date.now()) } }
        leases.patch(name, patch, { type: 'merge', namespace: systemNamespace, signal }).catch(() => undefined)
      }, this.#renewEveryMs)
      signal.addEventListener('abort', () => clearInterval(renewing), { once: true })
      const outcome = await this.#executeOne(name, signal, () => clearInterval(renewing))
      clearInterval(renewing)
      if (outcome === 'crashed') exitCode = undefined
      else {
        await workers.delete(name)
        await leases.delete(name, { namespace: systemNamespace })
      }
    } catch (error) {
      exitCode = 1
      if (!signal.aborted && !isReason(error, 'NotFound')) throw error
    } finally {
      stop.abort()
      this.#running.delete(name)
      this.#listener?.exited(name, exitCode)
    }
  }

  async #executeOne(worker: string, signal: AbortSignal, stopRenewing: () => void): Promise<'done' | 'crashed'> {
    const runs = this.#client.resource(runResource)
    let run: Run | undefined
    for await (const { type, object } of runs.watch({ fieldSelector: `spec.workerName=${worker}`, signal })) {
      if (type !== 'ADDED' && type !== 'MODIFIED') continue
      const { name, namespace } = object.metadata
      const report = async (status: object) => await runs.patchStatus(name, { status }, { namespace })
      if (!run) {
        run = object
        this.accepted.push(run)
        await report({ phase: 'Preparing', startedAt: rfc3339(Date.now()) })
        await report({ phase: run.spec.type === 'Plan' ? 'Planning' : 'Applying' })
        const script = await this.script(run)
        if (script === 'crash') {
          stopRenewing()
          return 'crashed'
        }
        if (script !== 'block') {
          await report({ ...script.status, finishedAt: rfc3339(Date.now()) })
          return 'done'
        }
      }
      if (object.spec.cancel) {
        await report({ phase: 'Canceled', reason: 'Canceled', message: 'canceled', finishedAt: rfc3339(Date.now()) })
        return 'done'
      }
    }
    return 'done'
  }
}
