import { setTimeout as delay } from 'node:timers/promises'
import { isHostRequested, systemNamespace, type Worker, type WorkerPool, workerPoolResource, workerResource } from '../../api/index.ts'
import { decideOrphans, type ExitFailure, type OrphanSince } from '../../controllers/dispatch/index.ts'
import { type Client, leaseResource } from '../../kubernetes/client/index.ts'
import { coerceError, type Informer, type Log, type Manager } from '../../kubernetes/controller/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import type { ProcessPool } from '../process-pool/process-pool.ts'
import { decideClaims, decideExitReport } from './decide-claims.ts'

/** `claimed`: this host starts the worker. `lost`: another host was faster, or the request was withdrawn. `failed`: it was claimed and did not start. */
export type ClaimOutcome = 'claimed' | 'lost' | 'failed'

export type PoolAgentDependencies = {
  readonly manager: Manager
  readonly workers: Informer<Pick<Worker, 'spec' | 'status'>>
  readonly pools: Informer<Pick<WorkerPool, 'spec' | 'status'>>
  readonly processes: Pick<ProcessPool, 'start' | 'running' | 'stop' | 'listen'>
  /** Prepares the start of a worker: the environment of its process is complete afterwards. */
  prepare(worker: Worker): Promise<void>
  /** The name of this agent and of its host. */
  readonly agent: string
  readonly host: string
  readonly served: ReadonlySet<string>
  readonly maxWorkers: number
  readonly onClaim: (outcome: ClaimOutcome) => void
  readonly log: Log
  readonly nowMs: () => number
}

/** After an error of the API server. */
const retryAfterMs = 1_000

/** The shell around {@link decideClaims}: claims requests, starts their processes, and reports how those end that the worker itself cannot report. */
export class PoolAgent {
  readonly #dependencies: PoolAgentDependencies
  /** By worker: the work on its claim, its start or the report of its end. */
  readonly #inProgress = new Map<string, Promise<void>>()
  #orphansSince: ReadonlyMap<string, OrphanSince> = new Map()
  readonly #closing = new AbortController()
  #isDraining = false
  #isScheduled = false
  #timer: NodeJS.Timeout | undefined

  constructor(dependencies: PoolAgentDependencies) {
    this.#dependencies = dependencies
    const { workers, pools, processes } = dependencies
    processes.listen({
      exited: (name, exitCode, failure) => this.#onExit(name, exitCode, failure),
      observed: () => undefined,
    })
    workers.onChange({
      added: () => this.#wake(),
      updated: () => this.#wake(),
      deleted: worker => {
        // A registered worker watches its own object, and drains.
        if (isHostRequested(worker)) processes.stop(worker.metadata.name, { force: false })
        this.#wake()
      },
    })
    pools.onChange({ added: () => this.#wake() })
  }

  /** Claims nothing more; resolves when every claim has become a process or has been reported. */
  async drain(): Promise<void> {
    this.#isDraining = true
    await this.settled()
  }

  /** Resolves when no claim, start or report is in progress. */
  async settled(): Promise<void> {
    while (this.#inProgress.size > 0) await Promise.all(this.#inProgress.values())
  }

  close(): void {
    this.#isDraining = true
    this.#closing.abort()
    clearTimeout(this.#timer)
  }

  #wake(): void {
    if (this.#isScheduled || this.#closing.signal.aborted) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#pass()
    })
  }

  #pass(): void {
    const { workers, pools, processes, agent, served, maxWorkers } = this.#dependencies
    // With a cache that is not filled, every process would look like an orphan.
    if (!workers.hasSynced || !pools.hasSynced) return
    const running = processes.running()
    const { claim, fail } = decideClaims({
      workers: workers.byIndex('requested', 'yes'),
      pools: new Set([...served].filter(name => pools.has(name))),
      agent,
      active: new Set([...running.map(({ name }) => name), ...this.#inProgress.keys()]),
      maxWorkers,
      isDraining: this.#isDraining,
    })
    for (const worker of claim) this.#track(worker.metadata.name, () => this.#claimAndStart(worker))
    for (const { metadata } of fail) {
      const message = `"oarlock pool" on host ${this.#dependencies.host} ended before it started worker ${metadata.name}`
      this.#track(metadata.name, () => this.#report(metadata.name, undefined, 'CrashedOnStartup', message))
    }
    this.#stopOrphans()
  }

  #track(name: string, work: () => Promise<void>): void {
    const tracked = (this.#inProgress.get(name) ?? Promise.resolve())
      .then(work)
      .catch(async (thrown: unknown) => {
        // The status shows what has been written, so the next pass decides again.
        this.#dependencies.log.warn({ err: coerceError(thrown), worker: name }, 'request to the API server failed, retrying')
        await delay(retryAfterMs, undefined, { signal: this.#closing.signal }).catch(() => {})
      })
      .finally(() => {
        if (this.#inProgress.get(name) !== tracked) return
        this.#inProgress.delete(name)
        this.#wake()
      })
    this.#inProgress.set(name, tracked)
  }

  async #claimAndStart(worker: Worker): Promise<void> {
    const { pools, processes, prepare, host, onClaim, log } = this.#dependencies
    const { name } = worker.metadata
    if (!(await this.#claim(worker))) return onClaim('lost')
    try {
      const pool = pools.get(worker.spec.pool)
      if (!pool) throw new Error(`WorkerPool ${worker.spec.pool} was deleted`)
      await prepare(worker)
      const { slots, lifecycle } = worker.spec
      await processes.start({ ...pool, spec: { ...pool.spec, slots, lifecycle } }, name)
      onClaim('claimed')
      log.info({ worker: name, pool: worker.spec.pool }, 'started a worker')
    } catch (thrown) {
      onClaim('failed')
      const message = `failed to start worker ${name} on host ${host}: ${coerceError(thrown).message}`
      log.warn({ worker: name, err: coerceError(thrown) }, 'failed to start a worker')
      await this.#report(name, undefined, 'CreateFailed', message)
    }
  }

  /** Returns false if another host was faster, or the request was withdrawn. */
  async #claim({ metadata: { name, resourceVersion } }: Worker): Promise<boolean> {
    const { agent, host } = this.#dependencies
    try {
      await this.#workers.patchStatus(name, { status: { phase: 'Starting', agent, host } }, { resourceVersion })
      return true
    } catch (error) {
      if (isReason(error, 'Conflict', 'NotFound')) return false
      throw error
    }
  }

  #onExit(name: string, exitCode: number | undefined, failure: ExitFailure | undefined): void {
    const { host } = this.#dependencies
    const outcome = exitCode === undefined ? 'was killed' : `exited with code ${exitCode}`
    // A crash is not the failure of a start, if the worker has registered: the controller knows.
    const { reason, message } = failure?.crash ?? failure ?? { message: `the process of worker ${name} ${outcome} on host ${host}` }
    this.#track(name, () => this.#report(name, exitCode, reason, message))
  }

  /** Reads the Worker first: it may have registered, or be deleted, and the cache may not show it yet. */
  async #report(name: string, exitCode: number | undefined, reason: string | undefined, message: string): Promise<void> {
    const { agent, log } = this.#dependencies
    for (;;) {
      const worker = await this.#workers.getOrUndefined(name)
      const status = decideExitReport(worker, { agent, exitCode, reason, message })
      if (!worker || !status) return
      const { resourceVersion } = worker.metadata
      try {
        await this.#workers.patchStatus(name, { status }, { resourceVersion })
        log.warn({ worker: name, exitCode, reason }, message)
        return
      } catch (error) {
        if (isReason(error, 'NotFound')) return
        if (!isReason(error, 'Conflict')) throw error
      }
    }
  }

  get #client(): Client {
    return this.#dependencies.manager.client
  }

  get #workers() {
    return this.#client.resource(workerResource)
  }

  /** Stops processes that have no Worker: their request was withdrawn, or they were declared lost and still run. */
  #stopOrphans(): void {
    const { workers, processes, nowMs } = this.#dependencies
    const { stop, since, requeueAfterMs } = decideOrphans({
      running: processes.running(),
      isRegistered: name => workers.has(name),
      isStarting: name => this.#inProgress.has(name),
      isAlive: () => false,
      since: this.#orphansSince,
      nowMs: nowMs(),
    })
    this.#orphansSince = since
    for (const { name, force } of stop) void this.#stopOrphan(name, force)
    clearTimeout(this.#timer)
    if (requeueAfterMs !== undefined) this.#timer = setTimeout(() => this.#wake(), requeueAfterMs).unref()
  }

  /** A process that still has a Lease may be executing a Run: it is asked again and never killed (invariant 8). */
  async #stopOrphan(name: string, force: boolean): Promise<void> {
    const { processes, log } = this.#dependencies
    try {
      const lease = force ? await this.#client.resource(leaseResource).getOrUndefined(name, { namespace: systemNamespace }) : undefined
      log.warn({ worker: name, force: force && !lease }, 'stopping a worker process that has no Worker object')
      processes.stop(name, { force: force && !lease })
    } catch (thrown) {
      log.warn({ err: coerceError(thrown), worker: name }, 'failed to read the Lease of a worker process without a Worker object')
    }
  }
}

/** Watched kinds; each agent keeps the Workers of its pools only. */
export const agentCaches = (manager: Manager, pools: Iterable<string>) => ({
  workers: manager.informer(workerResource, {
    labelSelector: `oarlock.dev/pool in (${[...pools].join(', ')})`,
    indexes: { requested: worker => (isHostRequested(worker) ? ['yes'] : []) },
  }),
  pools: manager.informer(workerPoolResource),
})
