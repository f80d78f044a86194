/** Above 400 lines: starting, leading, sharing keys and stopping are one order of events. */
import type { Registry } from 'prom-client'
import { type Client, crdResource } from '../client/index.ts'
import { isReason, type NewObject, type Resource } from '../object/index.ts'
import type { HealthReason } from '../util/health-checks.ts'
import { coerceError, type Log } from '../util/log.ts'
import { systemTimers, type Timers } from '../util/timers.ts'
import { consoleLog } from './console-log.ts'
import { Controller, type ControllerHost } from './controller.ts'
import { crdInformer, EstablishedKinds } from './established-kinds.ts'
import { type Health, healthOf } from './health.ts'
import type { Informer, InformerOptions, InformerParts } from './informer.ts'
import { LeaseHolder, type LeaseOptions, leaseStore } from './lease-holder.ts'
import { type CacheFailure, type Metrics, metricsOn, noMetrics } from './metrics.ts'
import { NotLeaderError } from './not-leader-error.ts'
import { type ProbeOptions, ProbeServer } from './probe-server.ts'
import { labelWithBucket } from './sharding/bucket.ts'
import { NotOwnerError } from './sharding/not-owner-error.ts'
import type { ShardOptions } from './sharding/options.ts'
import { Shards } from './sharding/shards.ts'
import type { Tenure } from './sharding/tenures.ts'
import { SharedInformers } from './shared-informers.ts'
import type { Tracer } from './trace.ts'
import { WriteThroughClient } from './write-through-client.ts'

/** A task that runs alongside the controllers until its signal aborts, such as a server or a ticker. It starts when all caches are filled. */
export type Runnable = {
  start(signal: AbortSignal): Promise<void>
  /** Default true: with leader election only the leader runs it. */
  needsLeader?: boolean | undefined
  name?: string | undefined
}

export type ManagerOptions = {
  client: Client
  /** Further clusters by name (letters, digits, dots, dashes), for informers and controllers with `cluster` or `clusters`. */
  clusters?: Readonly<Record<string, Client>> | undefined
  /** Default: warnings and errors on stderr, as `consoleLog('warn')` writes them. `silentLog` writes nothing. */
  log?: Log | undefined
  /** Default: none, and this process acts immediately, which is correct only if it is the only one. */
  leaderElection?: LeaseOptions | undefined
  /**
   * Several replicas share the keys of all controllers that do not exclude it: each key has one owner at any instant. Default: none. May be
   * combined with `leaderElection`, which then applies to controllers with `sharded: false` and to runnables.
   */
  shards?: ShardOptions | undefined
  /** Metrics under controller-runtime's names; default: none. */
  registry?: Registry | undefined
  /** Serves health, readiness and metrics from start until the stop has completed; default: nothing is served. */
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
  /** Grace period of the stop; default 30,000. Keep it below the Pod's terminationGracePeriodSeconds. */
  graceMs?: number | undefined
  /** Default SIGTERM and SIGINT. */
  signals?: readonly NodeJS.Signals[] | undefined
}

/** What ends a controller whose CRD was deleted. */
type Gate = { stopping: AbortController; readonly running: Set<Promise<void>> }

/** How long the stop waits for the slot of a ring to be released. */
const releaseTimeoutMs = 5_000
/** Without a sign, a provider whose CRDs were forgotten looks as if it had nothing to do. */
const missingCrdWarningMs = 5_000

/** How long the work of a lost leadership may take to end before the process is not healthy: it does not contend before. */
const endOfLeadershipMs = 30_000

/** How long the stop waits, after the grace period, for reconciles that ignore their signal. */
const abortGraceMs = 1_000

/**
 * Runs controllers together: one watch per kind and selection however many use it, informers before controllers, leader
 * election before either writes, and a stop that lets running reconciles finish.
 */
export class Manager {
  /**
   * For reads and writes at the API server. A write is in the caches of this manager as soon as it is acknowledged.
   * Responses to writes are frozen, because the caches share them.
   */
  readonly client: Client
  /**
   * The same for work that needs leadership: a write throws {@link NotLeaderError} and is not sent when this process does not
   * lead at that instant, even immediately after it was stopped for a while (SIGSTOP, suspend). Controllers that need leadership
   * use this client. Only the server can reject a write already in flight, by the `resourceVersion` or `uid` that it carries.
   */
  readonly leaderClient: Client
  /** This process as a member of a ring, with `shards`; undefined otherwise. */
  readonly shards: Pick<Shards, 'slot' | 'owns' | 'view' | 'counts'> | undefined
  readonly #shards: Shards | undefined
  #shardsRun: Promise<void> | undefined
  readonly #shardClients = new WeakMap<Tenure, Map<string | undefined, Client>>()
  readonly #options: ManagerOptions
  readonly #log: Log
  readonly #informers = new SharedInformers()
  readonly #clients = new Map<string, { client: Client; leaderClient: Client }>()
  readonly #tasks: (Controller | Runnable)[] = []
  /** Controllers that wait for their CRD. */
  readonly #gates = new Map<Controller, Gate>()
  #kinds: EstablishedKinds | undefined
  readonly #readinessChecks: (() => readonly HealthReason[])[] = []
  readonly #host: ControllerHost
  readonly #failures = new Map<string, Error>()
  readonly #running = new Set<Promise<void>>()
  /** Aborted: no new work. */
  readonly #stopping = new AbortController()
  /** Aborted: running work must end now. */
  readonly #aborting = new AbortController()
  /** Caches outlive the work that needs them. */
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
    const { client, random } = options
    const controllers = () => this.#tasks.flatMap(task => (task instanceof Controller && task.isSharded ? [task.name] : []))
    const shards = options.shards && new Shards(options.shards, { client, log: this.#log, random, controllers })
    this.#shards = shards
    this.shards = shards
    if (shards)
      this.addReadinessCheck(() => shards.foreignMembers().map(detail => ({ reason: 'the ring has members of another operator', detail })))
    const manager = this
    this.#host = {
      shards: this.#shards,
      shardClientOf: (cluster, tenure) => this.#shardClientOf(cluster, tenure),
      log: this.#log,
      timers: options.timers ?? systemTimers,
      tracer: options.tracer,
      random: options.random ?? Math.random,
      get metrics() {
        return manager.#metrics
      },
      isLeading: () => this.#lease?.isHeld ?? true,
      informer: (resource, informerOptions) => this.informer(resource, informerOptions),
      clientOf: (cluster, { needsLeader }) => (needsLeader ? this.#clientsOf(cluster).leaderClient : this.clientOf(cluster)),
    }
  }

  /** Resolves when this process becomes leader; without leader election, at the start. */
  get whenLeader(): Promise<void> {
    return this.#leaderReady.promise
  }

  /** True while this process may act. Without leader election: from start to stop. */
  get isLeader(): boolean {
    if (!this.#options.leaderElection) return this.#state === 'started' || this.#state === 'starting'
    return this.#lease?.isHeld ?? false
  }

  /** The identity of the process that leads, as of the last attempt to lead; undefined if it is not known. */
  get leader(): string | undefined {
    return this.#lease?.holder
  }

  /** The port of health and metrics; undefined unless `probes` are served. */
  get probePort(): number | undefined {
    return this.#probes?.port
  }

  /** The client of one of `clusters`; without a name, the manager's own. @throws {RangeError} for an unknown name. */
  clientOf(cluster?: string): Client {
    return this.#clientsOf(cluster).client
  }

  /** The same as {@link leaderClient} for one of `clusters`. @throws {RangeError} for an unknown name. */
  leaderClientOf(cluster?: string): Client {
    return this.#clientsOf(cluster).leaderClient
  }

  #clientsOf(cluster: string | undefined): { client: Client; leaderClient: Client } {
    if (cluster === undefined) return this
    const clients = this.#clients.get(cluster)
    if (clients) return clients
    const known = [...this.#clients.keys()].join(', ') || 'none'
    throw new RangeError(`the manager has no cluster ${JSON.stringify(cluster)}; known clusters: ${known}`)
  }

  /**
   * The cache of one kind and selection, shared by all who ask; watched from the start of the manager on. Indexes may
   * be added by each of them.
   * @throws {TypeError} if it exists with another transform. @throws {RangeError} for a cluster the manager does not have.
   */
  informer<Body>(resource: Resource<Body>, options: InformerOptions<Body> = {}): Informer<Body> {
    // The client as the user passed it: caches do not write through caches.
    this.clientOf(options.cluster)
    const client = (options.cluster === undefined ? undefined : this.#options.clusters?.[options.cluster]) ?? this.#options.client
    const isRunning = this.#state === 'starting' || this.#state === 'started'
    return this.#informers.get(resource, options, {
      client,
      log: this.#log,
      listWatch: this.#options.listWatch as InformerParts<Body>['listWatch'],
      shards: this.#shards,
      onCreated: informer => {
        if (isRunning) this.#watch(informer)
      },
    })
  }

  /** Adds a condition of {@link readyz}: `check` returns the reasons why the process is not ready; empty if it is. */
  addReadinessCheck(check: () => readonly HealthReason[]): void {
    this.#readinessChecks.push(check)
  }

  /** Of the controllers, and of the runnables that have a name. */
  get taskNames(): readonly string[] {
    return this.#tasks.flatMap(({ name }) => name ?? [])
  }

  /** Names of the tasks that only the leader runs, and not a member of a ring; empty without `leaderElection`. */
  get leaderTaskNames(): readonly string[] {
    return this.#tasks.flatMap(task => (this.#needsLeader(task) && task.name) || [])
  }

  /** Adds a controller or runnable. After {@link start} it starts immediately. */
  add(task: Controller | Runnable): void {
    if (task instanceof Controller) {
      if (this.#tasks.some(other => other instanceof Controller && other.name === task.name)) {
        throw new TypeError(`a controller named ${JSON.stringify(task.name)} was already added: names must be unique in a manager`)
      }
      if (task.awaits && !this.#gates.has(task)) {
        this.#addWhenEstablished(task, task.awaits)
        return
      }
      task.connect(this.#host)
    }
    this.#tasks.push(task)
    if (this.#state === 'starting' || this.#state === 'started') this.#begin(task)
  }

  /** Adds the controller when its CRD is Established, and ends it when it no longer is. */
  #addWhenEstablished(task: Controller, kind: Resource<unknown>): void {
    this.#kinds ??= new EstablishedKinds(this.informer(crdResource, crdInformer))
    const gate: Gate = { stopping: new AbortController(), running: new Set() }
    this.#gates.set(task, gate)
    let last = Promise.resolve()
    let wasServed = false
    const waited = this.#host.timers.after(missingCrdWarningMs, () => {
      const crd = `${kind.plural}.${kind.group}`
      if (!wasServed) this.#log.warn({ controller: task.name, crd }, 'CRD is not installed: the controller starts when it is')
    })
    this.#unobserve.push(waited)
    this.#kinds.follow(kind, isServed => {
      wasServed = true
      waited()
      this.#log.info(
        { controller: task.name, crd: `${kind.plural}.${kind.group}` },
        isServed ? 'CRD is Established' : 'CRD is not served any more',
      )
      if (!isServed) {
        gate.stopping.abort(new Error(`the CRD of ${kind.plural} was deleted`))
        this.#tasks.splice(this.#tasks.indexOf(task), 1)
        last = Promise.all(gate.running).then(() => undefined)
        return
      }
      gate.stopping = new AbortController()
      const { signal } = gate.stopping
      // The same controller does not run twice.
      void last.then(() => {
        if (!signal.aborted && this.#state !== 'stopped') this.add(task)
      })
    })
  }

  /**
   * Starts caches, then leader election, then each controller as soon as its caches are filled (and, where needed, this process
   * leads). Resolves when all caches are filled. A kind that cannot be listed, for example because its CRD is missing, delays
   * this and its own controllers only; `/readyz` names it.
   */
  async start(): Promise<void> {
    if (this.#state !== 'new') throw new Error(`the manager is already ${this.#state}: it can be started only once`)
    this.#state = 'starting'
    const { registry, leaderElection } = this.#options
    if (registry) {
      this.#metrics = await metricsOn(registry)
      this.#unobserve.push(this.#metrics.watchCaches(() => this.#informers.all().map(failureOf)))
      for (const client of new Set([this.#options.client, ...Object.values(this.#options.clusters ?? {})])) {
        this.#unobserve.push(client.observeRequests(request => this.#metrics.request(request)))
      }
    }
    await this.#serveProbes()
    if (this.#stopping.signal.aborted) {
      // stop() was called while the port was being opened and could not close it.
      await this.#probes?.close()
      return
    }
    for (const informer of this.#informers.all()) this.#watch(informer)
    const { shards } = this.#options
    if (this.#shards && shards) {
      const member = this.#shards
      this.#unobserve.push(this.#metrics.watchShards(shards.name, () => member.counts()))
      this.#shardsRun = member.run(this.#informerStop.signal).catch(error => this.#fail('sharding', error))
    }
    for (const task of this.#tasks) if (!this.#needsLeader(task)) this.#begin(task)
    if (leaderElection) this.#contend(leaderElection)
    else this.#leaderReady.resolve()
    await Promise.all(this.#informers.all().map(informer => informer.whenSynced(this.#stopping.signal)))
    if (this.#state === 'starting') this.#state = 'started'
  }

  /**
   * Starts, runs until the process receives a signal, and stops gracefully: for the main function of an operator. A second
   * signal exits the process immediately with code 1. Resolves when everything has ended; the caller closes its clients.
   */
  async run({ graceMs, signals = ['SIGTERM', 'SIGINT'] }: RunOptions = {}): Promise<void> {
    const stopRequested = Promise.withResolvers<void>()
    let isStopping = false
    const onSignal = (signal: NodeJS.Signals) => {
      if (isStopping) process.exit(1)
      isStopping = true
      this.#log.info({ signal }, 'shutting down: no new work, waiting for running reconciles')
      stopRequested.resolve()
    }
    for (const signal of signals) process.on(signal, onSignal)
    try {
      // Not awaited first: a missing kind would also block the stop.
      await Promise.race([this.start().then(() => stopRequested.promise), stopRequested.promise])
      await this.stop({ graceMs })
    } finally {
      for (const signal of signals) process.off(signal, onSignal)
    }
  }

  /**
   * Accepts no new work, waits `graceMs` (default 30,000) for running work, then aborts its signal; releases the Lease if
   * everything has ended, and stops the caches. Safe to call twice.
   */
  stop(options: { graceMs?: number } = {}): Promise<void> {
    this.#stopped ??= this.#stop(options.graceMs ?? 30_000)
    return this.#stopped
  }

  /** Liveness: no task has failed permanently, and every controller can make progress. */
  healthz(): Health {
    return healthOf(this.#failureReasons())
  }

  /**
   * Readiness: started, every cache is filled, and the server accepts the credentials. A process that waits for leadership is ready, one that
   * cannot contend for it is not. A server that does not answer makes no process unready that has its caches.
   */
  readyz(): Health {
    const reasons = this.#failureReasons()
    if (this.#state === 'new' || this.#state === 'stopped')
      reasons.push(`the manager is ${this.#state === 'new' ? 'not started' : 'stopped'}`)
    for (const informer of this.#informers.all()) {
      const { hasSynced, isFilled, lastError } = informer
      // Filling for buckets that come is normal, failing to is not.
      const hasAll = isFilled || (hasSynced && !lastError)
      if (hasAll && !isReason(lastError, 'Unauthorized', 'Forbidden')) continue
      const where = informer.cluster === undefined ? '' : ` in cluster ${informer.cluster}`
      const reason = `the cache of ${informer.resource.plural}${where} is not ${hasAll ? 'kept in sync' : 'filled yet'}`
      reasons.push(lastError ? { reason, detail: lastError } : reason)
    }
    for (const check of this.#readinessChecks) reasons.push(...check())
    if (this.#shards) reasons.push(...this.#shards.notReady())
    if (this.#lease?.lastError) reasons.push({ reason: 'leader election fails', detail: this.#lease.lastError })
    return healthOf(reasons)
  }

  #failureReasons(): HealthReason[] {
    const failures = [...this.#failures].map(([name, error]) => ({ reason: `${name} failed`, detail: error }))
    const blocked = this.#tasks.map(task => (task instanceof Controller ? task.failure : undefined)).filter(text => text !== undefined)
    return [...failures, ...blocked]
  }

  #clientsOn(cluster: string | undefined, inner: Client, isElected: boolean): { client: Client; leaderClient: Client } {
    const cachesOf = (resource: Resource<unknown>) => this.#informers.ofKind(cluster, resource)
    const client = new WriteThroughClient(inner, cachesOf)
    if (!isElected) return { client, leaderClient: client }
    const requireLeadership = () => {
      if (this.#lease && !this.#lease.isHeld) throw new NotLeaderError()
      return this.#leadership?.aborting.signal
    }
    return { client, leaderClient: new WriteThroughClient(inner, cachesOf, requireLeadership) }
  }

  #watch(informer: Informer<unknown>): void {
    informer.start(this.#informerStop.signal).catch(error => this.#fail(`informer of ${informer.resource.plural}`, error))
  }

  async #serveProbes(): Promise<void> {
    const { probes, registry } = this.#options
    if (!probes) return
    this.#probes = await ProbeServer.start(probes, {
      livez: () => this.healthz().publicReasons,
      readyz: () => this.readyz().publicReasons,
      metrics: registry && (async () => ({ contentType: registry.contentType, text: await registry.metrics() })),
    })
  }

  #needsLeader(task: Controller | Runnable): boolean {
    const isSharded = this.#shards !== undefined && task instanceof Controller && task.isSharded
    return this.#options.leaderElection !== undefined && task.needsLeader !== false && !isSharded
  }

  /** Whether a controller works on the same keys as its other replicas, without a sign that this is intended. */
  #runsEverywhere(task: Controller | Runnable): boolean {
    const isUnsharded = this.#shards !== undefined && task instanceof Controller && !task.isSharded
    return isUnsharded && task.needsLeader && this.#options.leaderElection === undefined
  }

  #shardClientOf(cluster: string | undefined, tenure: Tenure): Client {
    const known = this.#shardClients.get(tenure) ?? new Map<string | undefined, Client>()
    this.#shardClients.set(tenure, known)
    let client = known.get(cluster)
    if (!client) {
      const inner = (cluster === undefined ? undefined : this.#options.clusters?.[cluster]) ?? this.#options.client
      const cachesOf = (resource: Resource<unknown>) => this.#informers.ofKind(cluster, resource)
      const requireOwnership = () => {
        if (!tenure.mayWrite()) throw new NotOwnerError(tenure.bucket)
        return tenure.signal
      }
      const prepare = <Body>(object: NewObject<Body>) =>
        labelWithBucket(tenure.bucket, object, owner =>
          this.#informers.labelsOf(cluster, owner, object.metadata.namespace ?? inner.defaultNamespace),
        )
      client = new WriteThroughClient(inner, cachesOf, requireOwnership, prepare)
      known.set(cluster, client)
    }
    return client
  }

  /** Runs a task within the current leadership, or outside it if the task does not need leadership. */
  #begin(task: Controller | Runnable): void {
    const needsLeader = this.#needsLeader(task)
    const scope = needsLeader ? this.#leadership : { stopping: this.#stopping, aborting: this.#aborting, running: this.#running }
    if (!scope || scope.stopping.signal.aborted) return
    const name = task.name ?? 'a runnable'
    if (this.#runsEverywhere(task))
      this.#log.warn(
        { controller: task.name },
        'controller is not sharded and runs in every replica: set `leaderElection`, or `needsLeader: false` if that is intended',
      )
    const gate = task instanceof Controller ? this.#gates.get(task) : undefined
    const stopping = gate ? AbortSignal.any([scope.stopping.signal, gate.stopping.signal]) : scope.stopping.signal
    const run = this.#run(task, stopping, scope.aborting.signal).catch(error => {
      if (!stopping.aborted) this.#fail(name, error)
      else this.#log.warn({ err: coerceError(error), task: name }, 'task failed while stopping')
    })
    for (const running of [scope.running, gate?.running]) {
      running?.add(run)
      void run.then(() => running?.delete(run))
    }
  }

  async #run(task: Controller | Runnable, stopping: AbortSignal, aborting: AbortSignal): Promise<void> {
    if (task instanceof Controller) return await task.run(this.#host, stopping, aborting)
    await Promise.all(this.#informers.all().map(informer => informer.whenSynced(stopping)))
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
          for (const task of this.#tasks) if (this.#needsLeader(task)) this.#begin(task)
          this.#leaderReady.resolve()
        },
        onLost: async () => {
          const leadership = this.#leadership
          if (!leadership) return
          leadership.stopping.abort()
          // A graceful stop keeps the Lease and lets them finish. After a lost Lease another process may start at any moment (invariant 7).
          if (!this.#stopping.signal.aborted) leadership.aborting.abort(new NotLeaderError())
          else if (this.#aborting.signal.aborted) leadership.aborting.abort(this.#aborting.signal.reason)
          else
            this.#aborting.signal.addEventListener('abort', () => leadership.aborting.abort(this.#aborting.signal.reason), { once: true })
          await this.#endOf(leadership.running)
          this.#leadership = undefined
          this.#metrics.leader(options.leaseName, false)
        },
      })
      .catch(error => this.#fail('leader election', error))
  }

  /** Resolves when the work of a leadership has ended. After a lost Lease, what ignores its signal is a failure: it keeps this process from leading again. */
  async #endOf(running: ReadonlySet<Promise<void>>): Promise<void> {
    const name = 'the end of a lost leadership'
    const cancel = this.#host.timers.after(endOfLeadershipMs, () => {
      if (!this.#stopping.signal.aborted) this.#fail(name, new Error(`${running.size} tasks still run although their signal aborted`))
    })
    await Promise.all(running)
    cancel()
    this.#failures.delete(name)
  }

  async #stop(graceMs: number): Promise<void> {
    const startedMs = performance.now()
    // The other members take the buckets while this one still works on them.
    if (this.#shardsRun) await this.#shards?.leave(graceMs / 2)
    const leftMs = () => Math.max(0, graceMs - (performance.now() - startedMs))
    this.#stopping.abort(new Error('the manager is stopping'))
    const work = Promise.all([...this.#running, this.#leaseRun])
    if (!(await endsWithin(work, leftMs()))) {
      this.#log.warn({ graceMs }, 'grace period expired, aborting running tasks')
      this.#aborting.abort(new Error(`the manager is stopping and the grace period of ${graceMs} ms has expired`))
      this.#shards?.abort()
      // If a task ignores its signal, the Lease is left to expire: no other process may start alongside it (invariant 7).
      if (!(await endsWithin(work, abortGraceMs))) this.#log.error({}, 'a task ignores its abort signal and is abandoned')
    }
    // As with the Lease of a leader: a slot whose work has not ended is left to expire.
    if (this.#shardsRun) await this.#shards?.release(Math.min(Math.max(leftMs(), abortGraceMs), releaseTimeoutMs))
    this.#informerStop.abort()
    await this.#shardsRun
    for (const stop of this.#unobserve) stop()
    await this.#probes?.close()
    this.#state = 'stopped'
  }

  #fail(name: string, thrown: unknown): void {
    const error = coerceError(thrown)
    this.#failures.set(name, error)
    this.#log.error({ err: error, task: name }, 'task failed and is no longer running')
  }
}

function failureOf({ resource: { group, plural }, cluster, failingMs }: Informer<unknown>): CacheFailure {
  return { resource: group ? `${plural}.${group}` : plural, cluster, seconds: failingMs / 1_000 }
}

async function endsWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const timeout = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => timeout.resolve(false), ms)
  const ended = await Promise.race([work.then(() => true), timeout.promise])
  clearTimeout(timer)
  return ended
}
