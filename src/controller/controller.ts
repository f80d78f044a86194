import { type KubeObject, objectKey, parseApiVersion, parseKey, type Resource } from '../kube/index.ts'
import type { ChangeHandler, Informer, InformerOptions } from './informer.ts'
import { coerceError, type Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Change, Predicate } from './predicates.ts'
import { decideOutcome, type Reconcile, type ReconcileRequest, TerminalError } from './reconcile.ts'
import type { Timers } from './timers.ts'
import { lowPriority, normalPriority, WorkQueue } from './work-queue.ts'

/** Changes of another kind, mapped to the keys that they concern. {@link watching} infers the object's type. */
export type WatchSource = {
  readonly resource: Resource<unknown>
  /** Called for the old and the new object of an update. */
  map(object: KubeObject): readonly string[]
  predicate?: Predicate
  informer?: InformerOptions<unknown>
  /** Collects changes for this long, so that many of them make one reconcile; default 0. */
  delayMs?: number
}

/** A kind whose objects `for` owns, with a say in which of its changes matter. */
export type OwnedSource = Pick<WatchSource, 'resource' | 'predicate' | 'informer' | 'delayMs'>

/** A {@link WatchSource} whose `map` knows the type of its objects. */
export function watching<Body>(
  resource: Resource<Body>,
  map: (object: KubeObject<Body>) => readonly string[],
  options: { predicate?: Predicate<Body>; informer?: InformerOptions<Body>; delayMs?: number } = {},
): WatchSource {
  return { resource, map, ...options } as unknown as WatchSource
}

export type ControllerOptions<Body> = {
  /** Names queue, metrics and log lines; unique in a manager. */
  name: string
  /** The kind whose keys are reconciled. */
  for: Resource<Body>
  /** Filter for changes of `for`: all must pass. */
  predicates?: Predicate<NoInfer<Body>>[]
  /**
   * Place in the queue for a change of `for`, higher first; default 0, and {@link lowPriority} for what was there from the
   * start. A function decides for both. Requeues say theirs in the result.
   */
  priority?: { of(object: KubeObject<NoInfer<Body>>): number }['of']
  /** Selection of the informer of `for`. */
  informer?: InformerOptions<Body>
  /** Kinds whose objects have one of `for` as their controlling owner: their changes reconcile the owner. */
  owns?: (Resource<unknown> | OwnedSource)[]
  watches?: WatchSource[]
  /** Keys worked on at the same time; default 10. One key never runs twice at once (invariant 7). */
  maxConcurrent?: number
  /** Backoff of a failing key; default 5 ms doubling to 1,000 s. */
  backoff?: { baseDelayMs?: number; maxDelayMs?: number }
  /** Aborts the reconcile's signal after this long; default never. */
  timeoutMs?: number
  /** Whether it waits for leadership where the manager has leader election; default true. */
  needsLeader?: boolean
  reconcile: Reconcile
}

/** What a controller needs of its manager. */
export type ControllerHost = {
  readonly log: Log
  readonly metrics: Metrics
  readonly timers: Timers
  /** Whether work that needs leadership may begin at this instant: also right after the process was stopped for a while. */
  mayLead(): boolean
  informer<Body>(resource: Resource<Body>, options?: InformerOptions<Body>): Informer<Body>
}

/** Declares a controller for `Manager.add`. */
export function controller<Body>(options: ControllerOptions<Body>): Controller {
  return new Controller(options as unknown as ControllerOptions<unknown>)
}

/** A source of keys: subscribing it to its informer fills the queue. */
type Source = {
  informer: Informer<unknown>
  keysOf: (object: KubeObject<unknown>) => readonly string[]
  passes: (change: Change) => boolean
  delayMs: number
  priorityOf?: (object: KubeObject<unknown>) => number
}

/** Reconciles keys of one kind with a bounded number of workers. Made by {@link controller}, run by the manager. */
export class Controller {
  readonly name: string
  readonly needsLeader: boolean
  readonly #options: ControllerOptions<unknown>
  #queue: WorkQueue | undefined

  constructor(options: ControllerOptions<unknown>) {
    const { name, maxConcurrent = 10 } = options
    if (!Number.isInteger(maxConcurrent) || maxConcurrent < 1) {
      throw new RangeError(`maxConcurrent of controller ${name} must be a whole number > 0, got ${maxConcurrent}`)
    }
    this.name = name
    this.needsLeader = options.needsLeader ?? true
    this.#options = options
  }

  /** Reconciles `key` as if it had changed; does nothing while the controller is not running. */
  enqueue(key: string, options: { delayMs?: number; priority?: number } = {}): void {
    this.#queue?.add(key, options)
  }

  /** Keys that wait for a worker, that workers have, and that wait for their time; all 0 while the controller is not running. */
  get depth(): { waiting: number; running: number; delayed: number } {
    const queue = this.#queue
    return { waiting: queue?.length ?? 0, running: queue?.running ?? 0, delayed: queue?.delayed ?? 0 }
  }

  /** Makes sure that the manager watches what this controller needs. */
  connect(host: ControllerHost): void {
    this.#sources(host)
  }

  /**
   * Works until `stopping` aborts and the running reconciles have ended; `aborting` is what they see as their signal.
   * May be run again afterwards, as after leadership was lost and regained.
   */
  async run(host: ControllerHost, stopping: AbortSignal, aborting: AbortSignal): Promise<void> {
    const { name } = this
    const { maxConcurrent = 10, backoff } = this.#options
    const log = host.log.child({ controller: name })
    const queue = new WorkQueue({ ...backoff, timers: host.timers, observer: host.metrics.queue(name) })
    const unwatch = host.metrics.watchQueue(name, queue)
    const sources = this.#sources(host)
    // Before the subscription: what comes while the caches fill is collected and worked on afterwards.
    this.#queue = queue
    const unsubscribe = sources.map(source => source.informer.onChange(handlerOf(source, queue, log)))
    const onStop = () => queue.shutdown()
    stopping.addEventListener('abort', onStop, { once: true })
    if (stopping.aborted) onStop()
    try {
      await Promise.all(sources.map(({ informer }) => informer.whenSynced(stopping)))
      if (!stopping.aborted) log.info({ workers: maxConcurrent, objects: sources[0]?.informer.size }, 'controller started')
      let active = 0
      const work = async () => {
        for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
          // Invariant 7: the lease may have run out unnoticed. Nothing is lost: whoever leads next starts with all there is.
          if (this.needsLeader && !host.mayLead()) {
            queue.done(key)
            continue
          }
          host.metrics.workers(name, ++active, maxConcurrent)
          await this.#reconcile(key, queue, host, log, aborting)
          host.metrics.workers(name, --active, maxConcurrent)
          queue.done(key)
        }
      }
      await Promise.all(Array.from({ length: maxConcurrent }, work))
    } finally {
      stopping.removeEventListener('abort', onStop)
      for (const stop of unsubscribe) stop()
      unwatch()
      this.#queue = undefined
    }
  }

  async #reconcile(key: string, queue: WorkQueue, host: ControllerHost, log: Log, aborting: AbortSignal): Promise<void> {
    const { name } = this
    const { timeoutMs } = this.#options
    const startedMs = host.timers.nowMs()
    const deadline = timeoutMs === undefined ? undefined : new AbortController()
    const signal = deadline ? AbortSignal.any([aborting, deadline.signal]) : aborting
    const cancel =
      deadline && host.timers.after(timeoutMs as number, () => deadline.abort(new Error(`the reconcile took longer than ${timeoutMs} ms`)))
    const attempt = queue.failures(key)
    const request = new Request(key, attempt, signal, log)
    let settled: { result: unknown } | { error: Error }
    try {
      settled = { result: await this.#options.reconcile(request) }
    } catch (thrown) {
      settled = { error: coerceError(thrown) }
    }
    cancel?.()
    const seconds = (host.timers.nowMs() - startedMs) / 1_000
    const { outcome, error } = decideOutcome(settled)
    const isAborted = signal.aborted && error !== undefined
    switch (outcome.kind) {
      case 'forget':
        queue.forget(key)
        break
      case 'requeue':
        queue.forget(key)
        queue.add(key, { delayMs: outcome.delayMs, priority: outcome.priority })
        break
      case 'give-up':
        queue.forget(key)
        break
      case 'retry':
        queue.addRateLimited(key)
        break
    }
    const result = error ? 'error' : outcome.kind === 'requeue' ? 'requeue_after' : 'success'
    host.metrics.reconciled(name, result, seconds, error instanceof TerminalError)
    if (error && isAborted && aborting.aborted) log.debug({ key, err: error }, 'reconcile was interrupted')
    else if (error) log.error({ key, err: error, attempt, isTerminal: outcome.kind === 'give-up' }, 'reconcile failed')
  }

  #sources(host: ControllerHost): Source[] {
    const { for: resource, predicates = [], owns = [], watches = [], informer, priority } = this.#options
    const own: Source = {
      informer: host.informer(resource, informer),
      keysOf: object => [objectKey(object)],
      passes: change => predicates.every(predicate => predicate(change)),
      delayMs: 0,
      priorityOf: priority,
    }
    const owned = owns.map((kind): Source => {
      const source: OwnedSource = 'resource' in kind ? (kind as OwnedSource) : { resource: kind }
      return {
        informer: host.informer(source.resource, source.informer),
        keysOf: object => ownerKeys(object, resource),
        passes: change => source.predicate?.(change) ?? true,
        delayMs: source.delayMs ?? 0,
      }
    })
    const watched = watches.map(
      (watch): Source => ({
        informer: host.informer(watch.resource, watch.informer),
        keysOf: object => watch.map(object as KubeObject),
        passes: change => watch.predicate?.(change) ?? true,
        delayMs: watch.delayMs ?? 0,
      }),
    )
    return [own, ...owned, ...watched]
  }
}

/** The keys of the controlling owner of `object`, if it is of this kind; the version of the reference does not matter. */
function ownerKeys({ metadata }: KubeObject<unknown>, owner: Resource<unknown>): string[] {
  const reference = metadata.ownerReferences?.find(({ controller }) => controller)
  if (!reference || reference.kind !== owner.kind || parseApiVersion(reference.apiVersion).group !== owner.group) return []
  return [owner.scope === 'Namespaced' ? `${metadata.namespace}/${reference.name}` : reference.name]
}

function handlerOf(source: Source, queue: WorkQueue, log: Log): ChangeHandler<unknown> {
  const handle = (change: Change, objects: readonly [KubeObject<unknown>, KubeObject<unknown>?]) => {
    // A predicate that throws must not hide a change: a reconcile too many is harmless, one too few is not.
    let passes = true
    try {
      passes = source.passes(change)
    } catch (error) {
      log.error({ err: coerceError(error) }, 'predicate threw, the change is let through')
    }
    if (!passes) return
    const { delayMs, priorityOf } = source
    const [first, second] = objects
    const usual = change.type === 'added' && change.isInitial ? lowPriority : normalPriority
    const priority = priorityOf ? safePriority(priorityOf, first as KubeObject<unknown>, usual, log) : usual
    const keys = source.keysOf(first as KubeObject<unknown>)
    for (const key of keys) queue.add(key, { priority, delayMs })
    if (second === undefined) return
    // Each key once: a second add would find it running already, and run it again for nothing.
    for (const key of source.keysOf(second)) if (!keys.includes(key)) queue.add(key, { priority, delayMs })
  }
  return {
    added: (object, isInitial) => handle({ type: 'added', object, isInitial }, [object]),
    updated: (old, object) => handle({ type: 'updated', old, object }, [object, old]),
    deleted: object => handle({ type: 'deleted', object }, [object]),
  }
}

function safePriority(of: (object: KubeObject<unknown>) => number, object: KubeObject<unknown>, usual: number, log: Log): number {
  try {
    const priority = of(object)
    return typeof priority === 'number' && !Number.isNaN(priority) ? priority : usual
  } catch (error) {
    log.error({ err: coerceError(error) }, 'priority function threw, the usual priority is taken')
    return usual
  }
}

/** A class for its lazy logger: most reconciles log nothing, and a child logger each would cost more than the queue. */
class Request implements ReconcileRequest {
  readonly key: string
  readonly attempt: number
  readonly signal: AbortSignal
  readonly #log: Log
  #child: Log | undefined

  constructor(key: string, attempt: number, signal: AbortSignal, log: Log) {
    this.key = key
    this.attempt = attempt
    this.signal = signal
    this.#log = log
  }

  get name(): string {
    return parseKey(this.key).name
  }

  get namespace(): string | undefined {
    return parseKey(this.key).namespace
  }

  get log(): Log {
    this.#child ??= this.#log.child({ key: this.key })
    return this.#child
  }
}
