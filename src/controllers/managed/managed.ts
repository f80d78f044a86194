import {
  type Controller,
  controller,
  NotOwnerError,
  type ReconcileRequest,
  type Result,
  TerminalError,
} from '../../kubernetes/controller/index.ts'
import type { ManagedBody } from './managed-object.ts'
import type { ManagedOptions } from './managed-options.ts'
import { type Hold, ManagedReconciler, writeGraceMs } from './reconcile-managed.ts'

type Reconcile<Body> = (request: ReconcileRequest<Body>, hold?: Hold) => Promise<Result>

/**
 * Declares the controller of one kind of external resource, for `Manager.add`: the author writes how one is observed, created, updated and deleted, the controller does the
 * rest, as Crossplane's managed reconciler does.
 * @throws {RangeError} naming the option that is out of range.
 */
export function managed<Body extends ManagedBody, Connection, State>(options: ManagedOptions<Body, Connection, State>): Controller {
  const { kind, lock = 'none', timeoutMs = 60_000, maxConcurrent, backoff } = options
  for (const name of ['pollIntervalMs', 'minimumPollIntervalMs', 'deletionCheckMs', 'timeoutMs'] as const) {
    const value = options[name]
    if (value !== undefined && !(value > 0)) throw new RangeError(`${name} of managed kind ${kind.kind} must be a number > 0, got ${value}`)
  }
  const reconciler = new ManagedReconciler(options)
  const name = options.name ?? kind.plural
  const self = controller<Body>({
    name,
    for: kind,
    ...reconciler.sources,
    maxConcurrent,
    backoff: { baseDelayMs: 1_000, maxDelayMs: 60_000, ...backoff },
    timeoutMs: timeoutMs + writeGraceMs,
    whenEstablished: true,
    // Without `shard` a bucket says nothing about who may work: with leader election, the leader does.
    sharded: lock === 'shard',
    needsLeader: lock === 'none',
    reconcile: withLock(lock, reconciler.reconcile.bind(reconciler), options.pollIntervalMs ?? 60_000),
  })
  if (typeof lock === 'object') {
    lock.onFreed(lease => {
      const owner = lease.metadata.ownerReferences?.find(reference => reference.kind === kind.kind)
      if (owner) self.enqueue(kind.scope === 'Namespaced' ? `${lease.metadata.namespace}/${owner.name}` : owner.name)
    })
  }
  return self
}

/** With `none` it is the function itself: one replica pays nothing for locks that it does not need. */
export function withLock<Body>(
  lock: NonNullable<ManagedOptions['lock']>,
  reconcile: Reconcile<Body>,
  retryMs: number,
): (request: ReconcileRequest<Body>) => Promise<Result> {
  if (lock === 'none') return reconcile
  if (lock === 'shard') {
    return request => {
      const { shard, signal } = request
      if (!shard) throw new TerminalError("lock 'shard' needs a Manager with shards, and a controller that is sharded")
      // The bucket's signal is part of the request's.
      const check = () => {
        if (!shard.mayWrite()) throw new NotOwnerError(shard.bucket)
      }
      return reconcile(request, { signal, fence: shard.fence, check })
    }
  }
  return async request => {
    const { object } = request
    if (!object) return await reconcile(request)
    const hold = await lock.acquire(object, request.signal)
    // It is called when the holder is found dead; the interval is a second way to notice.
    if (!hold) return { requeueAfterMs: retryMs }
    return await reconcile(request, hold)
  }
}
