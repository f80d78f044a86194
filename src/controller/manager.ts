import type { Registry } from 'prom-client'
import type { Client } from '../client/index.ts'
import type { Resource } from '../kube/index.ts'
import { Controller, type ControllerHost } from './controller.ts'
import { Informer, type InformerOptions, type InformerParts } from './informer.ts'
import { LeaseHolder, type LeaseOptions, leaseStore } from './lease-holder.ts'
import { coerceError, type Log, silentLog } from './log.ts'
import { type Metrics, metricsOn, noMetrics } from './metrics.ts'
import { systemTimers, type Timers } from './timers.ts'

/** Something that runs beside the controllers until its signal aborts, such as a server or a ticker; begins when all caches are filled. */
export type Runnable = {
  start(signal: AbortSignal): Promise<void>
  /** Default true: where the manager has leader election, only the leader runs it. */
  needsLeader?: boolean
  name?: string
}

export type ManagerOptions = {
  client: Client
  log?: Log
  /** Without it, this process acts at once: correct only if it is the only one. */
  leaderElection?: LeaseOptions
  /** Metrics under controller-runtime's names; without it none are kept. */
  registry?: Registry
  /** How list+watch of all informers behaves; for tests. */
  listWatch?: InformerParts<unknown>['listWatch']
  timers?: Timers
}

export type Health = { ok: boolean; reasons: string[] }

/** How long after the grace time reconciles that ignore their signal are waited for. */
const afterAbortMs = 1_000

type Shared = { informer: Informer<unknown>; transform: unknown }

/**
 * Runs controllers together: one watch per kind and selection however many use it, informers before controllers, the
 * leader first, and an end that lets running reconciles finish.
 */
export class Manager {
  readonly client: Client
  readonly #options: ManagerOptions
  readonly #log: Log
  readonly #informers = new Map<string, Shared>()
  readonly #tasks: (Controller | Runnable)[] = []
  readonly #host: ControllerHost
  readonly #failures = new Map<string, Error>()
  readonly #running = new Set<Promise<void>>()
  /** No new work. */
  readonly #stopping = new AbortController()
  /** Running work must end now. */
  readonly #aborting = new AbortController()
  /** Caches and the lease outlive the work that needs them. */
  readonly #informerStop = new AbortController()
  readonly #leaderReady = Promise.withResolvers<void>()
  #metrics: Metrics = noMetrics
  #state: 'new' | 'starting' | 'started' | 'stopped' = 'new'
  #lease: LeaseHolder | undefined
  #leaseRun: Promise<void> | undefined
  #leadership: { stopping: AbortController; aborting: AbortController; running: Set<Promise<void>> } | undefined
  #stopped: Promise<void> | undefined
  #unobserve: (() => void) | undefined

  constructor(options: ManagerOptions) {
    this.client = options.client
    this.#options = options
    this.#log = options.log ?? silentLog
    const manager = this
    this.#host = {
      log: this.#log,
      timers: options.timers ?? systemTimers,
      get metrics() {
        return manager.#metrics
      },
      mayLead: () => this.#lease?.isHeld ?? true,
      informer: (resource, informerOptions) => this.informer(resource, informerOptions),
    }
  }

  /** Resolves when this process leads; at the start when there is no leader election. */
  get whenLeader(): Promise<void> {
    return this.#leaderReady.promise
  }

  /** True while this process may act; without leader election from start to stop. */
  get isLeader(): boolean {
    if (!this.#options.leaderElection) return this.#state === 'started' || this.#state === 'starting'
    return this.#lease?.isHeld ?? false
  }

  /**
   * The cache of one kind and selection, shared by all who ask; watched from the start of the manager on. Indexes may
   * be added by each of them.
   * @throws {TypeError} if it exists with another transform.
   */
  informer<Body>(resource: Resource<Body>, options: InformerOptions<Body> = {}): Informer<Body> {
    const { namespace = '', labelSelector = '', fieldSelector = '', indexes = {}, transform } = options
    const key = [resource.apiVersion, resource.plural, namespace, labelSelector, fieldSelector].join('|')
    let shared = this.#informers.get(key)
    if (!shared) {
      const { client } = this
      const parts = { ...options, client, resource, log: this.#log, listWatch: this.#options.listWatch as InformerParts<Body>['listWatch'] }
      shared = { informer: new Informer<Body>(parts) as unknown as Informer<unknown>, transform }
      this.#informers.set(key, shared)
      if (this.#state === 'starting' || this.#state === 'started') this.#watch(shared.informer)
    } else if (transform && shared.transform !== transform) {
      throw new TypeError(
        `the informer of ${resource.plural} exists already with another transform: declare the transform where it is asked for first`,
      )
    }
    const informer = shared.informer as unknown as Informer<Body>
    for (const [name, valuesOf] of Object.entries(indexes)) informer.addIndex(name, valuesOf)
    return informer
  }

  /** Adds a controller or anything else to run; after the start it begins at once. */
  add(task: Controller | Runnable): void {
    if (task instanceof Controller) {
      if (this.#tasks.some(other => other instanceof Controller && other.name === task.name)) {
        throw new TypeError(`a controller named ${JSON.stringify(task.name)} was added before: names must be unique in a manager`)
      }
      task.connect(this.#host)
    }
    this.#tasks.push(task)
    if (this.#state === 'starting' || this.#state === 'started') this.#begin(task)
  }

  /**
   * Starts caches, then the lease, then each controller as soon as its caches are filled (and this process leads, where
   * it must). Resolves when all caches are filled; a kind that cannot be listed, as its CRD is missing, delays that and
   * its own controllers only. Readyz names it.
   */
  async start(): Promise<void> {
    if (this.#state !== 'new') throw new Error(`the manager is ${this.#state}: it starts once`)
    this.#state = 'starting'
    const { registry, leaderElection } = this.#options
    if (registry) {
      this.#metrics = await metricsOn(registry)
      this.#unobserve = this.client.observeRequests(request => this.#metrics.request(request))
    }
    if (this.#stopping.signal.aborted) return
    for (const { informer } of this.#informers.values()) this.#watch(informer)
    for (const task of this.#tasks) if (!leaderElection || task.needsLeader === false) this.#begin(task)
    if (leaderElection) this.#contend(leaderElection)
    else this.#leaderReady.resolve()
    await Promise.all([...this.#informers.values()].map(({ informer }) => informer.whenSynced(this.#stopping.signal)))
    if (this.#state === 'starting') this.#state = 'started'
  }

  /**
   * Takes no new work, lets what runs finish for `graceMs` (default 30,000), then aborts its signal; releases the lease
   * if everything ended, and stops the caches. Safe to call twice.
   */
  stop(options: { graceMs?: number } = {}): Promise<void> {
    this.#stopped ??= this.#stop(options.graceMs ?? 30_000)
    return this.#stopped
  }

  /** Alive: nothing that was added has failed for good. */
  healthz(): Health {
    return health([...this.#failures].map(([name, error]) => `${name} failed: ${error.message}`))
  }

  /** Ready: started, and every cache is filled. A process that waits for leadership is ready. */
  readyz(): Health {
    const reasons = this.healthz().reasons
    if (this.#state === 'new' || this.#state === 'stopped')
      reasons.push(`the manager is ${this.#state === 'new' ? 'not started' : 'stopped'}`)
    for (const { informer } of this.#informers.values()) {
      if (informer.hasSynced) continue
      const why = informer.lastError ? `: ${informer.lastError.message}` : ''
      reasons.push(`the cache of ${informer.resource.plural} is not filled yet${why}`)
    }
    return health(reasons)
  }

  #watch(informer: Informer<unknown>): void {
    informer.start(this.#informerStop.signal).catch(error => this.#fail(`informer of ${informer.resource.plural}`, error))
  }

  /** Runs a task within the current leadership, or without one where it needs none. */
  #begin(task: Controller | Runnable): void {
    const needsLeader = this.#options.leaderElection !== undefined && task.needsLeader !== false
    const scope = needsLeader ? this.#leadership : { stopping: this.#stopping, aborting: this.#aborting, running: this.#running }
    if (!scope || scope.stopping.signal.aborted) return
    const name = task.name ?? 'a runnable'
    const run = this.#run(task, scope.stopping.signal, scope.aborting.signal).catch(error => {
      if (!scope.stopping.signal.aborted) this.#fail(name, error)
      else this.#log.warn({ err: coerceError(error), task: name }, 'task ended with an error while stopping')
    })
    scope.running.add(run)
    void run.then(() => scope.running.delete(run))
  }

  async #run(task: Controller | Runnable, stopping: AbortSignal, aborting: AbortSignal): Promise<void> {
    if (task instanceof Controller) return await task.run(this.#host, stopping, aborting)
    await Promise.all([...this.#informers.values()].map(({ informer }) => informer.whenSynced(stopping)))
    if (!stopping.aborted) await task.start(stopping)
  }

  #contend(options: LeaseOptions): void {
    const lease = new LeaseHolder({ ...options, store: leaseStore(this.client, options), log: this.#log })
    this.#lease = lease
    this.#metrics.leader(options.leaseName, false)
    this.#leaseRun = lease
      .run(this.#stopping.signal, {
        onGained: () => {
          this.#metrics.leader(options.leaseName, true)
          this.#leadership = { stopping: new AbortController(), aborting: new AbortController(), running: new Set() }
          for (const task of this.#tasks) if (task.needsLeader !== false) this.#begin(task)
          this.#leaderReady.resolve()
        },
        onLost: async () => {
          const leadership = this.#leadership
          if (!leadership) return
          leadership.stopping.abort()
          // A stop in good order keeps the lease, and lets them finish; a lost lease means another may start any moment (invariant 7).
          if (!this.#stopping.signal.aborted) leadership.aborting.abort(new Error('leadership was lost'))
          else if (this.#aborting.signal.aborted) leadership.aborting.abort(this.#aborting.signal.reason)
          else
            this.#aborting.signal.addEventListener('abort', () => leadership.aborting.abort(this.#aborting.signal.reason), { once: true })
          await Promise.all(leadership.running)
          this.#leadership = undefined
          this.#metrics.leader(options.leaseName, false)
        },
      })
      .catch(error => this.#fail('leader election', error))
  }

  async #stop(graceMs: number): Promise<void> {
    this.#stopping.abort(new Error('the manager stops'))
    const work = Promise.all([...this.#running, this.#leaseRun])
    if (!(await endsWithin(work, graceMs))) {
      this.#log.warn({ graceMs }, 'grace time is over, aborting what still runs')
      this.#aborting.abort(new Error(`the manager stops, and the grace time of ${graceMs} ms is over`))
      // The lease is left to run out if something ignores its signal: nobody may start beside it (invariant 7).
      if (!(await endsWithin(work, afterAbortMs))) this.#log.error({}, 'something does not react to its abort signal and is left behind')
    }
    this.#informerStop.abort()
    this.#unobserve?.()
    this.#state = 'stopped'
  }

  #fail(name: string, thrown: unknown): void {
    const error = coerceError(thrown)
    this.#failures.set(name, error)
    this.#log.error({ err: error, task: name }, 'task failed and is not running any more')
  }
}

function health(reasons: string[]): Health {
  return { ok: reasons.length === 0, reasons }
}

async function endsWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const timeout = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => timeout.resolve(false), ms)
  const ended = await Promise.race([work.then(() => true), timeout.promise])
  clearTimeout(timer)
  return ended
}
