import type { Client } from '../client/index.ts'
import { isReason, type KubeObject, type Resource } from '../object/index.ts'
import { coerceError, type Log } from '../util/log.ts'
import type { Timers } from '../util/timers.ts'
import { lowPriority, normalPriority, type RetryRate, WorkQueue } from '../util/work-queue.ts'
import type { Informer, InformerOptions } from './informer.ts'
import { identify, LazyReconcileRequest, type OwnCaches } from './lazy-reconcile-request.ts'
import type { Metrics } from './metrics.ts'
import { NotLeaderError } from './not-leader-error.ts'
import type { Predicate } from './predicates.ts'
import { decideOutcome, isPanic, isTerminal, type Reconcile, TerminalError } from './reconcile.ts'
import { schemaViolationOf } from './schema-violation.ts'
import { type Buckets, bucketIndex } from './sharding/bucket.ts'
import { NotOwnerError } from './sharding/not-owner-error.ts'
import { ShardedKeys } from './sharding/sharded-keys.ts'
import type { Shards } from './sharding/shards.ts'
import type { Tenure } from './sharding/tenures.ts'
import { UnlabeledObjects } from './sharding/unlabeled-objects.ts'
import { SlowestKeys } from './slowest-keys.ts'
import {
  handlerOf,
  type OwnedSource,
  ownedSourcesOf,
  parseQueueKey,
  queueKey,
  reducedWatchesOf,
  type Source,
  type SourceOptions,
  safePriority,
  sourcesOf,
  type WatchSource,
} from './sources.ts'
import { type Tracer, traced } from './trace.ts'

export type ControllerOptions<Body> = {
  /** Name of the queue, in metrics and log lines; unique in a manager. */
  name: string
  /** The kind whose keys are reconciled. */
  for: Resource<Body>
  /** Filters for changes of `for`: all must pass. */
  predicates?: Predicate<NoInfer<Body>>[] | undefined
  /**
   * Priority in the queue for a change of `for`, higher first. Default: 0, and {@link lowPriority} for objects of the initial
   * list. A function decides for both. A requeue without a priority in the result, and a retry, keep that of the key, as in
   * controller-runtime. With `shards` in the manager, the objects of buckets that the process gets have the priority of a change.
   */
  priority?: { of(object: KubeObject<NoInfer<Body>>): number }['of']
  /** Selection of the informer for `for`. */
  informer?: InformerOptions<Body> | undefined
  /** Kinds whose controlling owner is of kind `for`: their changes reconcile the owner. */
  owns?: (Resource<unknown> | OwnedSource)[] | undefined
  watches?: WatchSource[] | undefined
  /** Clusters of the manager that serve the kind: one reconcile function for all, with `request.cluster`. Default: the manager's own client. */
  clusters?: readonly string[] | undefined
  /** Keys reconciled concurrently; default 10. One key never runs twice concurrently (invariant 7). */
  maxConcurrent?: number | undefined
  /** Backoff of a failing key; default: from 5 ms, doubling up to 1,000 s. */
  backoff?: { baseDelayMs?: number | undefined; maxDelayMs?: number | undefined } | undefined
  /** Bounds the retries of all keys together, in addition to each key's backoff; default: no bound. */
  retryRate?: RetryRate | undefined
  /** Groups take turns in the queue, for example `key => key.split('/')[0]` for namespaces; default: first in, first out. */
  groupOf?: ((key: string) => string) | undefined
  /**
   * Reconciles every object of `for` again after this interval (jittered by ±10 %), after all changes and regardless of the
   * predicates; default: never. For changes that cause no event, such as drift in an external system.
   */
  resyncMs?: number | undefined
  /** Aborts the reconcile's signal after this time; default: never. */
  timeoutMs?: number | undefined
  /**
   * Rejects an object of a declared kind that violates its schema, with a terminal error that names the field, unless it is being
   * deleted. Default false: the reconcile receives it, and only a failed reconcile checks the schema, for the log.
   */
  validate?: boolean | undefined
  /**
   * Starts when the CRD of `for` is Established and serves its version, and stops when it is deleted: the manager is ready without it. Default false: a
   * missing kind delays readiness. Needs `list` and `watch` of CustomResourceDefinitions.
   */
  whenEstablished?: boolean | undefined
  /** With leader election in the manager: whether it runs only while this process leads. Default true. */
  needsLeader?: boolean | undefined
  /**
   * With `shards` in the manager: whether its keys are shared by the members of the ring, each with its part. Default true. If `for` is itself owned by a
   * sharded kind, `informer: { sharded: 'owned' }` leaves each key to the member that has its root. Then leadership is
   * not needed, and `retryRate` counts for each member.
   */
  sharded?: boolean | undefined
  reconcile: Reconcile<Body>
}

/** What a controller needs from its manager. */
export type ControllerHost = {
  readonly log: Log
  readonly metrics: Metrics
  readonly timers: Timers
  readonly tracer?: Tracer | undefined
  /** In [0, 1). */
  random(): number
  /** Whether work that needs leadership may begin at this instant; correct even immediately after the process was stopped for a while. */
  isLeading(): boolean
  informer<Body>(resource: Resource<Body>, options?: InformerOptions<Body>): Informer<Body>
  /** The client of a cluster, or the manager's own; its writes are in the caches when they are acknowledged. With `needsLeader` it writes only while this process leads. */
  clientOf(cluster: string | undefined, options: { needsLeader: boolean }): Client
  /** This process as a member of a ring, if the manager has `shards`. */
  readonly shards?: Shards | undefined
  /** The client for the keys of a bucket: it writes only while this process owns it, and labels what it creates. */
  shardClientOf(cluster: string | undefined, tenure: Tenure): Client
}

/** Consecutive conflicts that are not logged as errors. */
const expectedConflicts = 3

/** A reconcile that still runs this long after its signal aborted is considered stuck, and its worker is replaced. */
const stuckAfterMs = 10_000

/** Declares a controller for `Manager.add`. */
export function controller<Body>(options: ControllerOptions<Body>): Controller {
  return new Controller(options as unknown as ControllerOptions<unknown>)
}

/** Reconciles keys of one kind with a bounded number of workers. Created by {@link controller}, run by the manager. */
export class Controller {
  readonly name: string
  readonly needsLeader: boolean
  /** Whether its keys are shared by the members of a ring, if the manager has one. */
  readonly isSharded: boolean
  /** The kind whose CRD it waits for; undefined if it starts without one. */
  readonly awaits: Resource<unknown> | undefined
  readonly #options: ControllerOptions<unknown>
  readonly #maxConcurrent: number
  #queue: WorkQueue | undefined
  #stuck = 0

  /** @throws {RangeError} naming the option that is out of range. */
  constructor(options: ControllerOptions<unknown>) {
    const { name, maxConcurrent = 10, resyncMs, timeoutMs } = options
    if (!Number.isInteger(maxConcurrent) || maxConcurrent < 1) {
      throw new RangeError(`maxConcurrent of controller ${name} must be an integer > 0, got ${maxConcurrent}`)
    }
    for (const [option, ms] of Object.entries({ resyncMs, timeoutMs })) {
      if (ms !== undefined && !(ms > 0)) throw new RangeError(`${option} of controller ${name} must be a number > 0, got ${ms}`)
    }
    this.name = name
    this.needsLeader = options.needsLeader ?? true
    this.isSharded = options.sharded ?? true
    this.awaits = options.whenEstablished ? options.for : undefined
    this.#options = options
    this.#maxConcurrent = maxConcurrent
  }

  /** Reconciles `key` as if it had changed; does nothing while the controller is not running. */
  enqueue(key: string, options: { delayMs?: number; priority?: number; cluster?: string } = {}): void {
    this.#queue?.add(queueKey(options.cluster, key), options)
  }

  /** Whether its workers run: not before its CRD is Established, and with leader election only while this process leads. */
  get isRunning(): boolean {
    return this.#queue !== undefined
  }

  /** Keys that wait for a worker, that are being reconciled, and that are delayed; all 0 while the controller is not running. */
  get depth(): { waiting: number; running: number; delayed: number } {
    const queue = this.#queue
    return { waiting: queue?.length ?? 0, running: queue?.running ?? 0, delayed: queue?.delayed ?? 0 }
  }

  /** Why the controller can no longer make progress, if so: too many reconciles ignore their abort signal. */
  get failure(): string | undefined {
    if (this.#stuck < this.#maxConcurrent) return undefined
    return `${this.#stuck} reconciles of ${this.name} are still running although their signal aborted: pass the signal to every call they await`
  }

  /** Makes sure that the manager watches what this controller needs. */
  connect(host: ControllerHost): void {
    this.#sources(host)
  }

  /**
   * Runs until `stopping` aborts and the running reconciles have ended; they receive `aborting` as their signal.
   * May be run again afterwards, for example when leadership was lost and regained.
   */
  async run(host: ControllerHost, stopping: AbortSignal, aborting: AbortSignal): Promise<void> {
    const { name } = this
    const { backoff, retryRate, groupOf, priority: priorityOf } = this.#options
    const maxConcurrent = this.#maxConcurrent
    const shards = this.isSharded ? host.shards : undefined
    const needsLeader = this.needsLeader && !shards
    const log = host.log.child({ controller: name })
    const queue = new WorkQueue({
      ...backoff,
      retryRate,
      ...(groupOf && { groupOf: text => groupOf(parseQueueKey(text).key) }),
      timers: host.timers,
      observer: host.metrics.queue(name),
    })
    const unwatch = host.metrics.watchQueue(name, queue)
    host.metrics.controller(name, maxConcurrent)
    const sources = this.#sources(host)
    const own = new Map(
      sources
        .filter(({ isOwn }) => isOwn)
        .map(({ cluster, informer }) => [cluster, { informer, client: host.clientOf(cluster, { needsLeader }) }]),
    )
    const keys = shards && new ShardedKeys(shards, this.#options.informer?.sharded ?? 'root', own)
    const slowest = shards && new SlowestKeys()
    const unwatchSlowest = slowest && host.metrics.watchSlowest(name, () => slowest.list(host.timers.nowMs()))
    // Before the subscription: changes that arrive while the caches fill are queued and reconciled afterwards.
    this.#queue = queue
    this.#stuck = 0
    const unsubscribe = sources.map(source => source.informer.onChange(handlerOf(source, queue, log, keys?.admits.bind(keys))))
    const onStop = () => queue.shutdown()
    stopping.addEventListener('abort', onStop, { once: true })
    if (stopping.aborted) onStop()
    // All keys of a bucket are due when it was gained: what its last owner knew of them, such as delays, is lost. Not with the low priority of an
    // initial list: keys that ask for another reconcile keep the priority of their last change, and would occupy a busy member without end.
    const unfollow = shards?.follow({
      begun: buckets => {
        for (const [cluster, { informer }] of own) {
          for (const key of keysOf(informer, buckets)) {
            const object = priorityOf && informer.get(key)
            const priority = object ? safePriority(priorityOf, object, normalPriority, log) : normalPriority
            queue.add(queueKey(cluster, key), { priority })
          }
        }
      },
      ended: () => undefined,
    })
    const reduced = shards ? reducedWatchesOf(this.#options.watches) : []
    if (reduced.length > 0)
      log.warn(
        { kinds: reduced },
        'with shards `watches` of Secrets and ConfigMaps keep and pass only metadata: declare them with metadataOnly() if that is enough, or choose what is kept with `informer.transform`',
      )
    const endUnlabeled = shards && this.#watchUnlabeled(host, shards, log)
    const endResync = this.#resync(own, queue, host, keys)
    try {
      await Promise.all(sources.map(({ informer }) => informer.whenSynced(stopping)))
      if (!stopping.aborted)
        log.info(
          { workers: maxConcurrent, objects: [...own.values()].reduce((sum, { informer }) => sum + informer.size, 0) },
          'controller started',
        )
      let active = 0
      const working = new Set<Promise<void>>()
      const begin = () => {
        const worker = work().finally(() => working.delete(worker))
        working.add(worker)
      }
      const work = async () => {
        for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
          // Invariant 7: the Lease may have expired unnoticed. Nothing is lost: the next leader starts with all objects.
          if (needsLeader && !host.isLeading()) {
            queue.done(key)
            continue
          }
          const tenure = keys?.tenureOf(key)
          if (keys && !tenure) {
            // Nothing is lost here either: its owner starts with all keys of the bucket.
            keys.forget(key)
            queue.forget(key)
            queue.done(key)
            continue
          }
          const endTenure = tenure && shards?.begin(tenure)
          const startedMs = slowest ? host.timers.nowMs() : 0
          let isStuck = false
          host.metrics.workers(name, ++active)
          await this.#reconcile(key, queue, host, { log, aborting, own, keys, tenure }, () => {
            this.#stuck++
            // Its key stays locked (invariant 7), but its worker is replaced so that other keys make progress, up to twice the bound.
            isStuck = this.#stuck <= maxConcurrent
            if (isStuck) begin()
            else this.#stuck--
          })
          host.metrics.workers(name, --active)
          queue.done(key)
          // It may be due again: a change arrived meanwhile, or the result or a failure asks for another attempt.
          if (keys && !queue.has(key)) keys.forget(key)
          if (slowest) slowest.record(key, (host.timers.nowMs() - startedMs) / 1_000, host.timers.nowMs())
          endTenure?.()
          if (isStuck) {
            this.#stuck--
            return
          }
        }
      }
      for (let worker = 0; worker < maxConcurrent; worker++) begin()
      while (working.size > 0) await Promise.all(working)
    } finally {
      endResync()
      unfollow?.()
      endUnlabeled?.()
      unwatchSlowest?.()
      stopping.removeEventListener('abort', onStop)
      for (const stop of unsubscribe) stop()
      unwatch()
      this.#queue = undefined
    }
  }

  async #reconcile(
    text: string,
    queue: WorkQueue,
    host: ControllerHost,
    {
      log,
      aborting,
      own,
      keys,
      tenure,
    }: { log: Log; aborting: AbortSignal; own: OwnCaches; keys: ShardedKeys | undefined; tenure: Tenure | undefined },
    onStuck: () => void,
  ): Promise<void> {
    const { name } = this
    const { timeoutMs } = this.#options
    const startedMs = host.timers.nowMs()
    const deadline = timeoutMs === undefined ? undefined : new AbortController()
    let signal = deadline ? AbortSignal.any([aborting, deadline.signal]) : aborting
    if (tenure) signal = AbortSignal.any([signal, tenure.signal])
    const attempt = queue.failures(text)
    const priority = queue.priorityOf(text)
    const allowed = tenure && keys?.whileLabeled(text, tenure)
    const shard = allowed && { tenure: allowed, client: host.shardClientOf(parseQueueKey(text).cluster, allowed) }
    const isLeading = () => !this.needsLeader || keys !== undefined || host.isLeading()
    const request = new LazyReconcileRequest(text, attempt, signal, log, own, shard, isLeading)
    let cancel: (() => void) | undefined
    if (deadline && timeoutMs !== undefined) {
      cancel = host.timers.after(timeoutMs, () => {
        host.metrics.timedOut(name)
        deadline.abort(new Error(`the reconcile exceeded timeoutMs ${timeoutMs}`))
        cancel = host.timers.after(stuckAfterMs, () => {
          request.log.error(
            { afterMs: timeoutMs + stuckAfterMs },
            'reconcile ignores its abort signal, starting another worker in its place',
          )
          onStuck()
        })
      })
    }
    let settled: { result: unknown } | { error: Error }
    try {
      if (keys && tenure && !request.object && (await keys.isRecreatedElsewhere(text, tenure.bucket, signal))) {
        cancel?.()
        queue.forget(text)
        return
      }
      if (this.#options.validate) this.#rejectSchemaViolation(request)
      const call = () => this.#options.reconcile(request)
      settled = { result: await (host.tracer ? traced(host.tracer, { controller: name, ...identify(request) }, call) : call()) }
    } catch (thrown) {
      settled = { error: coerceError(thrown) }
      if (isPanic(thrown)) host.metrics.panicked(name)
    }
    cancel?.()
    const seconds = (host.timers.nowMs() - startedMs) / 1_000
    const { outcome, error } = decideOutcome(settled)
    switch (outcome.kind) {
      case 'forget':
      case 'give-up':
        queue.forget(text)
        break
      case 'requeue':
        queue.forget(text)
        queue.add(text, { delayMs: outcome.delayMs, priority: outcome.priority ?? priority })
        break
      case 'retry':
        queue.addRateLimited(text, { priority })
        break
    }
    const result = error ? 'error' : outcome.kind === 'requeue' ? 'requeue_after' : 'success'
    host.metrics.reconciled(name, result, seconds, isTerminal(error))
    if (!error) return
    const isInterrupted = signal.aborted && (aborting.aborted || tenure?.signal.aborted === true)
    if (isInterrupted || error instanceof NotLeaderError || error instanceof NotOwnerError) {
      request.log.debug({ err: error }, 'reconcile was interrupted')
      return
    }
    // Expected when several clients write: the second one reads the new version and retries. An error only if it persists.
    if (isReason(error, 'Conflict') && attempt < expectedConflicts) {
      request.log.info({ err: error, attempt }, 'reconcile wrote an outdated version, retrying')
      return
    }
    const schemaViolation = this.#schemaViolation(request)
    request.log.error(
      { err: error, attempt, isTerminal: outcome.kind === 'give-up', ...(schemaViolation && { schemaViolation }) },
      schemaViolation ? 'reconcile failed, and the object violates the schema of its kind: correct the object' : 'reconcile failed',
    )
  }

  #schemaViolation(request: LazyReconcileRequest): string | undefined {
    // The current version, which may be newer than the one the reconcile received.
    const object = request.informer.get(request.key)
    return object?.metadata.deletionTimestamp ? undefined : schemaViolationOf(this.#options.for, object)
  }

  #rejectSchemaViolation(request: LazyReconcileRequest): void {
    const schemaViolation = this.#schemaViolation(request)
    if (schemaViolation === undefined) return
    throw new TerminalError(
      `${this.#options.for.kind} ${request.key} violates the schema of its kind and is not reconciled until corrected: ${schemaViolation}`,
    )
  }

  /** Enqueues every key of `for` periodically; returns a function that stops it. */
  #resync(own: OwnCaches, queue: WorkQueue, host: ControllerHost, keys: ShardedKeys | undefined): () => void {
    const { resyncMs } = this.#options
    if (resyncMs === undefined) return () => undefined
    let cancel: () => void = () => undefined
    const arm = () => {
      cancel = host.timers.after(resyncMs * (0.9 + host.random() * 0.2), () => {
        for (const [cluster, { informer }] of own) {
          for (const key of informer.keys()) {
            const text = queueKey(cluster, key)
            if (!keys || keys.tenureOf(text)) queue.add(text, { priority: lowPriority })
          }
        }
        arm()
      })
    }
    arm()
    return () => cancel()
  }

  /** Reports owned objects that no member sees. Returns a function that ends it. */
  #watchUnlabeled(host: ControllerHost, shards: Shards, log: Log): () => void {
    const kinds = ownedSourcesOf(this.#options.owns).flatMap(({ resource, informer }) => {
      const { namespace, labelSelector, fieldSelector, sharded, cluster } = { sharded: 'owned', ...informer }
      if (sharded !== 'owned') return []
      const selection = { namespace, labelSelector, fieldSelector }
      return (cluster === undefined ? this.#clusters : [cluster]).map(each => ({
        ...{ resource, selection },
        client: host.clientOf(each, { needsLeader: false }),
      }))
    })
    const unlabeled = new UnlabeledObjects(this.#options.for, kinds, { log, timers: host.timers })
    const unfollow = shards.follow(unlabeled)
    const unwatch = host.metrics.watchUnlabeled(this.name, () => unlabeled.counts)
    return () => {
      unwatch()
      unfollow()
      unlabeled.stop()
    }
  }

  get #clusters(): readonly (string | undefined)[] {
    return this.#options.clusters ?? [undefined]
  }

  #sources(host: ControllerHost): Source[] {
    return this.#clusters.flatMap(cluster =>
      sourcesOf(
        this.#options as SourceOptions,
        cluster,
        (resource, options) => host.informer(resource, options),
        this.isSharded && host.shards !== undefined,
      ),
    )
  }
}

/** The keys of the cached objects in these buckets. */
function* keysOf(informer: Informer<unknown>, buckets: Buckets): Generator<string> {
  for (const bucket of buckets) yield* informer.indexKeys(bucketIndex, String(bucket))
}
