import type { Registry } from 'prom-client'
import { type Client, isMetadataOnly } from '../client/index.ts'
import type { Resource } from '../object/index.ts'
import { coerceError, type Log } from '../util/log.ts'
import { systemTimers, type Timers } from '../util/timers.ts'
import { consoleLog } from './console-log.ts'
import { Controller, type ControllerHost } from './controller.ts'
import { Informer, type InformerOptions, type InformerParts } from './informer.ts'
import { LeaseHolder, type LeaseOptions, leaseStore } from './lease-holder.ts'
import { type Metrics, metricsOn, noMetrics } from './metrics.ts'
import { NotLeaderError } from './not-leader-error.ts'
import { type ProbeOptions, ProbeServer } from './probe-server.ts'
import type { Tracer } from './trace.ts'
import { WriteThroughClient } from './write-through-client.ts'

/** Something that runs beside the controllers until its signal aborts, such as a server or a ticker; begins when all caches are filled. */
export type Runnable = {
  start(signal: AbortSignal): Promise<void>
  /** Default true: where the manager has leader election, only the leader runs it. */
  needsLeader?: boolean | undefined
  name?: string | undefined
}

export type ManagerOptions = {
  client: Client
  /** Further clusters, by names of letters, digits and dashes: for informers and controllers that say `cluster` or `clusters`. */
  clusters?: Readonly<Record<string, Client>> | undefined
  /** Default: warnings and errors on stderr, as `consoleLog('warn')` writes them. `silentLog` says nothing. */
  log?: Log | undefined
  /** Without it, this process acts at once: correct only if it is the only one. */
  leaderElection?: LeaseOptions | undefined
  /** Metrics under controller-runtime's names; without it none are kept. */
  registry?: Registry | undefined
  /** Serves health, readiness and metrics from the start to the end of the stop; default: nothing is served. */
  probes?: ProbeOptions | undefined
  /** A span for each attempt of a reconcile; default: none. */
  tracer?: Tracer | undefined
  /** How list+watch of all informers behaves; for tests. */
  listWatch?: InformerParts<unknown>['listWatch'] | undefined
  timers?: Timers | undefined
  /** In [0, 1): spreads resyncs. */
  random?: (() => number) | undefined
}

export type RunOptions = {
  /** Grace time of the stop; default 30,000. Keep it below the Pod's terminationGracePeriodSeconds. */
  graceMs?: number | undefined
  /** Default SIGTERM and SIGINT. */
  signals?: readonly NodeJS.Signals[] | undefined
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
  /**
   * For reads and writes at the API server: what it writes is in the caches of this manager as soon as the write is answered.
   * Answers of writes are frozen, as the caches share them.
   */
  readonly client: Client
  /**
   * The same for work that needs leadership: a write is refused with {@link NotLeaderError}, and not sent, when this process does
   * not lead at that instant, also right after it was stopped for a while. Controllers that need leadership are given it. A write
   * that was on its way already is for the server to refuse: by the `resourceVersion` or the `uid` that it carries.
   */
  readonly leaderClient: Client
  readonly #options: ManagerOptions
  readonly #log: Log
  readonly #informers = new Map<string, Shared>()
  /** The same by cluster, version and plural, whatever their selection: those that may hold what a write changed. */
  readonly #cachesOfKind = new Map<string, Informer<unknown>[]>()
  readonly #clients = new Map<string, { client: Client; leaderClient: Client }>()
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
  readonly #unobserve: (() => void)[] = []
  #probes: ProbeServer | undefined

  constructor(options: ManagerOptions) {
    const isElected = options.leaderElection !== undefined
    const own = this.#clientsOn(undefined, options.client, isElected)
    this.client = own.client
    this.leaderClient = own.leaderClient
    this.#options = options
    this.#log = options.log ?? consoleLog('warn')
    for (const [name, client] of Object.entries(options.clusters ?? {})) {
      if (!/^[a-zA-Z0-9.-]+$/.test(name)) {
        throw new TypeError(`the name ${JSON.stringify(name)} of a cluster must consist of letters, digits, dots and dashes`)
      }
      this.#clients.set(name, this.#clientsOn(name, client, isElected))
    }
    const manager = this
    this.#host = {
      log: this.#log,
      timers: options.timers ?? systemTimers,
      tracer: options.tracer,
      random: options.random ?? Math.random,
      get metrics() {
        return manager.#metrics
      },
      mayLead: () => this.#lease?.isHeld ?? true,
      informer: (resource, informerOptions) => this.informer(resource, informerOptions),
      clientOf: (cluster, { needsLeader }) => (needsLeader ? this.#clientsOf(cluster).leaderClient : this.clientOf(cluster)),
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

  /** The port of health and metrics; undefined unless `probes` are served. */
  get probePort(): number | undefined {
    return this.#probes?.port
  }

  /** The client of one of `clusters`, or the manager's own without a name. @throws {RangeError} for an unknown name. */
  clientOf(cluster?: string): Client {
    return this.#clientsOf(cluster).client
  }

  #clientsOf(cluster: string | undefined): { client: Client; leaderClient: Client } {
    if (cluster === undefined) return this
    const clients = this.#clients.get(cluster)
    if (clients) return clients
    const known = [...this.#clients.keys()].join(', ') || 'none'
    throw new RangeError(`the manager has no cluster ${JSON.stringify(cluster)}: it has ${known}`)
  }

  /**
   * The cache of one kind and selection, shared by all who ask; watched from the start of the manager on. Indexes may
   * be added by each of them.
   * @throws {TypeError} if it exists with another transform. @throws {RangeError} for a cluster the manager does not have.
   */
  informer<Body>(resource: Resource<Body>, options: InformerOptions<Body> = {}): Informer<Body> {
    const { cluster, namespace = '', labelSelector = '', fieldSelector = '', shardSelector = '', indexes = {}, transform } = options
    const isPartial = isMetadataOnly(resource) ? 'metadata' : ''
    const key = [
      cluster ?? '',
      resource.apiVersion,
      resource.plural,
      isPartial,
      namespace,
      labelSelector,
      fieldSelector,
      shardSelector,
    ].join('|')
    let shared = this.#informers.get(key)
    if (!shared) {
      this.clientOf(cluster)
      // As the user gave it: caches need no caches.
      const source = (cluster === undefined ? undefined : this.#options.clusters?.[cluster]) ?? this.#options.client
      const parts = {
        ...options,
        client: source,
        resource,
        log: this.#log,
        listWatch: this.#options.listWatch as InformerParts<Body>['listWatch'],
      }
      shared = { informer: new Informer<Body>(parts) as unknown as Informer<unknown>, transform }
      this.#informers.set(key, shared)
      const kind = kindKey(cluster, resource)
      this.#cachesOfKind.set(kind, [...(this.#cachesOfKind.get(kind) ?? []), shared.informer])
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
      for (const client of new Set([this.#options.client, ...Object.values(this.#options.clusters ?? {})])) {
        this.#unobserve.push(client.observeRequests(request => this.#metrics.request(request)))
      }
    }
    await this.#serveProbes()
    if (this.#stopping.signal.aborted) {
      // The stop came while the port was opened, and could not close it.
      await this.#probes?.close()
      return
    }
    for (const { informer } of this.#informers.values()) this.#watch(informer)
    for (const task of this.#tasks) if (!leaderElection || task.needsLeader === false) this.#begin(task)
    if (leaderElection) this.#contend(leaderElection)
    else this.#leaderReady.resolve()
    await Promise.all([...this.#informers.values()].map(({ informer }) => informer.whenSynced(this.#stopping.signal)))
    if (this.#state === 'starting') this.#state = 'started'
  }

  /**
   * Starts, works until the process is told to end, and stops in good order: for the main function of an operator. A
   * second signal ends the process at once with exit code 1. Resolves when everything has ended; closing clients is left
   * to the caller.
   */
  async run({ graceMs, signals = ['SIGTERM', 'SIGINT'] }: RunOptions = {}): Promise<void> {
    const told = Promise.withResolvers<void>()
    let isTold = false
    const onSignal = (signal: NodeJS.Signals) => {
      if (isTold) process.exit(1)
      isTold = true
      this.#log.info({ signal }, 'stopping: no new work, running reconciles finish')
      told.resolve()
    }
    for (const signal of signals) process.on(signal, onSignal)
    try {
      // Not awaited first: a kind that is missing would hold up the end as well.
      await Promise.race([this.start().then(() => told.promise), told.promise])
      await this.stop({ graceMs })
    } finally {
      for (const signal of signals) process.off(signal, onSignal)
    }
  }

  /**
   * Takes no new work, lets what runs finish for `graceMs` (default 30,000), then aborts its signal; releases the lease
   * if everything ended, and stops the caches. Safe to call twice.
   */
  stop(options: { graceMs?: number } = {}): Promise<void> {
    this.#stopped ??= this.#stop(options.graceMs ?? 30_000)
    return this.#stopped
  }

  /** Alive: nothing that was added has failed for good, and every controller can work. */
  healthz(): Health {
    const failures = [...this.#failures].map(([name, error]) => `${name} failed: ${error.message}`)
    const blocked = this.#tasks.map(task => (task instanceof Controller ? task.failure : undefined)).filter(text => text !== undefined)
    return health([...failures, ...blocked])
  }

  /** Ready: started, and every cache is filled. A process that waits for leadership is ready. */
  readyz(): Health {
    const reasons = this.healthz().reasons
    if (this.#state === 'new' || this.#state === 'stopped')
      reasons.push(`the manager is ${this.#state === 'new' ? 'not started' : 'stopped'}`)
    for (const { informer } of this.#informers.values()) {
      if (informer.hasSynced) continue
      const why = informer.lastError ? `: ${informer.lastError.message}` : ''
      const where = informer.cluster === undefined ? '' : ` in cluster ${informer.cluster}`
      reasons.push(`the cache of ${informer.resource.plural}${where} is not filled yet${why}`)
    }
    return health(reasons)
  }

  #clientsOn(cluster: string | undefined, inner: Client, isElected: boolean): { client: Client; leaderClient: Client } {
    const cachesOf = (resource: Resource<unknown>) => this.#cachesOfKind.get(kindKey(cluster, resource)) ?? []
    const client = new WriteThroughClient(inner, cachesOf)
    if (!isElected) return { client, leaderClient: client }
    const mustLead = () => {
      if (this.#lease && !this.#lease.isHeld) throw new NotLeaderError()
      return this.#leadership?.aborting.signal
    }
    return { client, leaderClient: new WriteThroughClient(inner, cachesOf, mustLead) }
  }

  #watch(informer: Informer<unknown>): void {
    informer.start(this.#informerStop.signal).catch(error => this.#fail(`informer of ${informer.resource.plural}`, error))
  }

  async #serveProbes(): Promise<void> {
    const { probes, registry } = this.#options
    if (!probes) return
    this.#probes = await ProbeServer.start(probes, {
      healthz: () => this.healthz().reasons,
      readyz: () => this.readyz().reasons,
      metrics: registry && (async () => ({ contentType: registry.contentType, text: await registry.metrics() })),
    })
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
    const lease = new LeaseHolder({ ...options, store: leaseStore(this.#options.client, options), log: this.#log })
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
          if (!this.#stopping.signal.aborted) leadership.aborting.abort(new NotLeaderError())
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
    for (const stop of this.#unobserve) stop()
    await this.#probes?.close()
    this.#state = 'stopped'
  }

  #fail(name: string, thrown: unknown): void {
    const error = coerceError(thrown)
    this.#failures.set(name, error)
    this.#log.error({ err: error, task: name }, 'task failed and is not running any more')
  }
}

function kindKey(cluster: string | undefined, { apiVersion, plural }: Resource<unknown>): string {
  return `${cluster ?? ''}|${apiVersion}|${plural}`
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
