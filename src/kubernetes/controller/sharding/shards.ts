import { randomBytes } from 'node:crypto'
import { bootClock, type Client, type Clock, type LeaseBody, leaseResource, listWatch } from '../../client/index.ts'
import { isReason, type KubeObject } from '../../object/index.ts'
import type { HealthReason } from '../../util/health-checks.ts'
import { coerceError, type Log } from '../../util/log.ts'
import { safeAnnotations } from '../lease-annotations.ts'
import { type Buckets, bucketOf } from './bucket.ts'
import { createLease } from './create-lease.ts'
import { ringLabel } from './lease-names.ts'
import { type MemberAction, MemberCore, type SlotLoss, type WriteFailure } from './member-core.ts'
import { type ShardOptions, type ShardSettings, shardSettingsOf } from './options.ts'
import { RequestFailures, type RingRequest } from './request-failures.ts'
import { type MemberStep, RingMember } from './ring-member.ts'
import { type ShardView, shardViewOf } from './shard-view.ts'
import { ShardedSource, type ShardedSourceOptions } from './sharded-source.ts'
import { type Tenure, Tenures } from './tenures.ts'

/** How often a watch of the Leases that is broken is opened again. */
const watchBackoff = { minMs: 200, maxMs: 2_000 }

export type ShardsParts = {
  client: Client
  log: Log
  clock?: Clock | undefined
  random?: (() => number) | undefined
  /** Names of the controllers that are sharded, by which members of another operator are recognized. */
  controllers?: (() => readonly string[]) | undefined
}

/** What a controller does when buckets come and go. */
export type ShardFollower = {
  /** Work on these buckets may begin: all their keys are due. */
  begun(buckets: Buckets): void
  /** Nothing of these buckets may begin any more. */
  ended(buckets: Buckets): void
}

/** Counts for metrics. */
export type ShardCounts = {
  ringVersion: number
  members: number
  slot: number | undefined
  /** Buckets that this process works on. */
  active: number
  /** Buckets that are assigned to this process, which does not work on them yet. */
  gaining: number
  /** Buckets that this process must give up, on which reconciles are still running. */
  releasing: number
  /** Buckets that this process started to work on, in total. */
  gained: number
  /** Buckets that this process stopped to work on, in total. */
  lost: number
  watches: number
}

/**
 * This process as a member of a ring: executes what `MemberCore` and `RingMember` decide, fills the caches of sharded controllers, and lets work
 * begin and end as the ring orders. Needs the rights to get, list, watch, create and update Leases in its namespace.
 */
export class Shards {
  readonly settings: ShardSettings
  readonly #parts: ShardsParts
  readonly #log: Log
  readonly #clock: Clock
  readonly #core: MemberCore
  readonly #tenures: Tenures
  readonly #member: RingMember
  readonly #sources = new Set<ShardedSource>()
  readonly #followers = new Set<ShardFollower>()
  /** Members of another operator that the log has. */
  #reportedMembers = ''
  #signal: AbortSignal | undefined
  #hasChanged = false
  #timer: NodeJS.Timeout | undefined
  /** When the timer is due. */
  #dueMs = Number.POSITIVE_INFINITY
  /** The last time that this process did not run for longer than `retryPeriodMs`. */
  #stopped: { untilMs: number; forMs: number } | undefined
  #hasReportedStandby = false
  #gained = 0
  #lost = 0
  readonly #failures: RequestFailures
  /** Whether the Lease of this slot was renewed since it was claimed. */
  #isRenewed = false
  /** Since when this process has a slot and does not do all that the ring lets it do. */
  #behindSinceMs: number | undefined
  readonly #left = Promise.withResolvers<void>()
  readonly #drained = Promise.withResolvers<void>()

  /** @throws {RangeError} for an option that is out of range. */
  constructor(options: ShardOptions, parts: ShardsParts) {
    const settings = shardSettingsOf(options)
    this.settings = settings
    this.#parts = parts
    this.#clock = parts.clock ?? bootClock
    this.#failures = new RequestFailures(() => this.#clock.nowMs())
    const processName = `${settings.identity}_${randomBytes(4).toString('hex')}`
    this.#log = parts.log.child({ ring: settings.name, member: processName })
    const { random = Math.random, controllers } = parts
    this.#core = new MemberCore({
      ...settings,
      processName,
      random,
      wallMs: Date.now,
      controllers,
      annotations: safeAnnotations(options.annotations, this.#log),
    })
    this.#tenures = new Tenures({ isValid: () => this.#core.isValid(this.#clock.nowMs()), releaseGraceMs: settings.releaseGraceMs })
    this.#member = new RingMember({
      core: this.#core,
      tenures: this.#tenures,
      caches: () => this.#sources,
      perform: step => this.#perform(step),
    })
  }

  /** The slot that this process has; undefined while it waits for one. */
  get slot(): number | undefined {
    return this.#core.isValid(this.#clock.nowMs()) ? this.#core.slot : undefined
  }

  /** Why this process cannot take its part in the ring; empty if it can, also while it is on standby. */
  notReady(): readonly HealthReason[] {
    const { slot } = this
    const failures = this.#failures
    if (slot === undefined) {
      const detail = failures.find('claim', 'renew', 'list', 'watch')
      return detail ? [{ reason: 'no slot of the ring can be claimed', detail }] : []
    }
    const renewal = this.#isRenewed ? undefined : failures.find('renew')
    if (renewal) return [{ reason: `the Lease of slot ${slot} cannot be renewed`, detail: renewal }]
    const behindMs = this.#clock.nowMs() - (this.#behindSinceMs ?? Number.POSITIVE_INFINITY)
    if (behindMs <= this.settings.leaseDurationMs) return []
    const isMember = this.#core.orders?.isMember === true
    const what = isMember
      ? `the ring has assigned ${this.#tenures.pending} buckets on which this process does not work yet`
      : `the ring does not have the member of slot ${slot}`
    const reason = `${what}, for ${Math.round(behindMs / 1_000)} s`
    const detail = isMember ? undefined : failures.find('ring', 'list')
    return [detail ? { reason, detail } : reason]
  }

  /** Members that cannot belong to the same operator, because their settings differ or they have none of its controllers; each with why. */
  foreignMembers(): string[] {
    return this.#core.foreignMembers(this.#clock.nowMs())
  }

  /** Whether this process may work on the object with this UID at this instant. */
  owns(uid: string): boolean {
    return this.tenureOf(bucketOf(uid)) !== undefined
  }

  /** The ring and its members as this process sees them; undefined before it has seen a ring. */
  view(): ShardView | undefined {
    return shardViewOf(this.settings.name, this.#core.leases)
  }

  counts(): ShardCounts {
    const { slot } = this
    const active = new Set(this.#tenures.active)
    const own = slot === undefined ? undefined : this.view()?.members.find(member => member.slot === slot)
    const losing = new Set(own?.losing)
    return {
      ringVersion: this.#core.ringVersion,
      members: this.#core.leases.filter(({ metadata, spec }) => !metadata.name.endsWith('-ring') && spec?.holderIdentity).length,
      slot,
      active: active.size,
      gaining: own ? own.gaining.length + own.buckets.filter(bucket => !active.has(bucket) && !losing.has(bucket)).length : 0,
      releasing: this.#tenures.busy.length,
      gained: this.#gained,
      lost: this.#lost,
      watches: [...this.#sources].reduce((sum, { watches }) => sum + watches, 0),
    }
  }

  /** The right to work on a bucket; undefined if this process does not have it at this instant. */
  tenureOf(bucket: number): Tenure | undefined {
    return this.#tenures.find(bucket)
  }

  /** Work begins. Returns a function to call when it has ended. */
  begin(tenure: Tenure): () => void {
    const end = this.#tenures.begin(tenure)
    return () => {
      const isLast = end()
      if (isLast || this.#member.awaitsEnd) this.#changed()
    }
  }

  /** What fills the cache of a sharded kind. */
  source(options: Omit<ShardedSourceOptions, 'onSynced'>): ShardedSource {
    const source = new ShardedSource({ ...options, onSynced: () => this.#changed() })
    this.#sources.add(source)
    const { orders } = this.#member
    if (orders) source.setWanted(orders.wanted)
    return source
  }

  /** Returns a function that removes the follower. Buckets that are held already are begun now. */
  follow(follower: ShardFollower): () => void {
    this.#followers.add(follower)
    const { active } = this.#tenures
    if (active.length > 0) follower.begun(active)
    return () => void this.#followers.delete(follower)
  }

  /** Takes part in the ring until the slot is released, or `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal
    const { name, namespace } = this.settings
    const onAbort = () => this.#left.resolve()
    signal.addEventListener('abort', onAbort, { once: true })
    const watching = new AbortController()
    const watch = listWatch<LeaseBody>(this.#parts.client, leaseResource, {
      namespace,
      labelSelector: `${ringLabel}=${name}`,
      signal: AbortSignal.any([signal, watching.signal]),
      backoff: watchBackoff,
      managedFields: false,
      onReplace: (leases, resourceVersion) => {
        this.#failures.succeeded('watch')
        this.#core.observeList(leases, resourceVersion, this.#clock.nowMs())
        this.#changed()
      },
      onEvent: ({ type, object }) => {
        this.#failures.succeeded('watch')
        if (type === 'BOOKMARK') return
        const nowMs = this.#clock.nowMs()
        if (type === 'DELETED') this.#core.observeDeletion(object, nowMs)
        else this.#core.observe(object, nowMs)
        this.#changed()
      },
      onError: error => {
        this.#failed('watch', { verb: 'watch' }, coerceError(error))
      },
    })
    this.#wake()
    await this.#left.promise
    clearTimeout(this.#timer)
    watching.abort()
    signal.removeEventListener('abort', onAbort)
    this.abort()
    await watch
  }

  /** Lets the other members take the buckets of this one, which works on what it has meanwhile. Resolves when it has none, or after `timeoutMs`. */
  async leave(timeoutMs: number): Promise<void> {
    this.#member.leave()
    this.#changed()
    const timeout = setTimeout(() => this.#drained.resolve(), timeoutMs)
    await this.#drained.promise
    clearTimeout(timeout)
  }

  /** Nothing may begin any more. When all work has ended, the slot is released; resolves then, or after `timeoutMs`. */
  async release(timeoutMs: number): Promise<void> {
    this.#member.end()
    this.#changed()
    const timeout = setTimeout(() => this.#left.resolve(), timeoutMs)
    await this.#left.promise
    clearTimeout(timeout)
  }

  /** Aborts all work: its grace period has expired. */
  abort(): void {
    this.#member.end()
    this.#member.follow(this.#clock.nowMs())
  }

  /** Coalesces what happens in one turn of the event loop. */
  #changed(): void {
    if (this.#hasChanged) return
    this.#hasChanged = true
    queueMicrotask(() => {
      this.#hasChanged = false
      this.#wake()
      this.#reportForeignMembers()
    })
  }

  #reportForeignMembers(): void {
    const members = this.foreignMembers()
    const text = members.join()
    if (text !== this.#reportedMembers && text !== '') this.#log.error({ members }, 'the ring has members of another operator')
    this.#reportedMembers = text
  }

  #wake(): void {
    if (!this.#signal || this.#signal.aborted) return
    const nowMs = this.#clock.nowMs()
    // A timer that is late by this much: the process was stopped, or its event loop was blocked.
    if (nowMs - this.#dueMs > this.settings.retryPeriodMs) this.#stopped = { untilMs: nowMs, forMs: nowMs - this.#dueMs }
    const { actions, aborted, wakeAtMs } = this.#member.wake(nowMs)
    if (aborted.length > 0) this.#log.warn({ buckets: aborted }, 'aborting reconciles of buckets that move to another member')
    for (const action of actions) void this.#send(action)
    const isBehind = this.slot !== undefined && (!this.#core.orders?.isMember || this.#tenures.pending > 0)
    this.#behindSinceMs = isBehind ? (this.#behindSinceMs ?? nowMs) : undefined
    if (this.#core.isOnStandby) {
      // Of a slot that others have now.
      this.#failures.succeeded('claim')
      this.#failures.succeeded('renew')
    }
    if (this.#core.isOnStandby && !this.#hasReportedStandby) {
      this.#hasReportedStandby = true
      const { slots } = this.settings
      this.#log.info({ slots }, `${slots === 1 ? 'the only slot is' : `all ${slots} slots are`} claimed; on standby`)
    }
    if (this.#core.hasLeft) this.#left.resolve()
    clearTimeout(this.#timer)
    if (!Number.isFinite(wakeAtMs)) {
      this.#dueMs = Number.POSITIVE_INFINITY
      return
    }
    // The clock has steps of 10 ms.
    const delayMs = Math.max(1, Math.min(wakeAtMs - nowMs + 1, 60_000))
    this.#dueMs = nowMs + delayMs
    this.#timer = setTimeout(() => this.#wake(), delayMs)
  }

  #perform({ slot, wanted, ended, begun, isDrained }: MemberStep): void {
    if (slot) this.#isRenewed = false
    if (slot) this.#hasReportedStandby = false
    if (slot === 'claimed') this.#log.info({ slot: this.#core.slot }, 'claimed a slot')
    if (slot === 'lost') this.#reportLoss()
    if (wanted) for (const source of this.#sources) source.setWanted(wanted)
    this.#gained += begun.length
    this.#lost += ended.length
    if (ended.length > 0) for (const follower of this.#followers) follower.ended(ended)
    if (begun.length > 0) for (const follower of this.#followers) follower.begun(begun)
    if (begun.length + ended.length > 0) {
      const version = this.#core.ringVersion
      this.#log.info({ version, gained: begun.length, lost: ended.length, buckets: this.#tenures.active.length }, 'buckets changed')
    }
    if (isDrained) this.#drained.resolve()
  }

  #failed(request: RingRequest, { verb, lease }: { verb: string; lease?: string | undefined }, err: Error): void {
    const report = this.#failures.failed(request, err)
    if (!report) return
    const { name, namespace } = this.settings
    const what = lease === undefined ? `the Leases of ring ${name} in ${namespace}` : `Lease ${namespace}/${lease}`
    this.#log.warn({ err, request, verb, ...report }, `cannot ${verb} ${what}, retrying; reported once a minute while it fails`)
  }

  #reportLoss(): void {
    const { renewDeadlineMs } = this.settings
    const stopped = this.#stopped
    // A Lease that only time has ended is not lost for the core before it decides.
    const loss = this.#core.loss ?? { kind: 'expired' }
    const isRecent = stopped !== undefined && this.#clock.nowMs() - stopped.untilMs < renewDeadlineMs
    const isCause = isRecent && stopped.forMs > renewDeadlineMs / 2 && (loss.kind === 'expired' || loss.kind === 'replaced')
    const err = loss.kind === 'expired' && !isCause ? this.#failures.find('renew', 'list') : undefined
    const why = isCause ? `this process did not run for ${Math.round(stopped.forMs / 1_000)} s` : lossText(loss)
    this.#log.error({ ...(err && { err }), ...(loss.kind === 'replaced' && { holder: loss.holder }) }, `lost the slot: ${why}`)
  }

  async #send(action: MemberAction): Promise<void> {
    const { namespace, name, renewDeadlineMs } = this.settings
    const leases = this.#parts.client.resource(leaseResource)
    // A hanging request must not keep the next one from being sent in time.
    const bounded = { signal: AbortSignal.timeout(Math.ceil(renewDeadlineMs / 2)) }
    const sentMs = this.#clock.nowMs()
    const request = action.kind === 'list' ? 'list' : action.purpose
    try {
      if (action.kind === 'list') {
        const { items, metadata } = await leases.listAll({ namespace, labelSelector: `${ringLabel}=${name}`, ...bounded })
        this.#core.listed(items, metadata.resourceVersion, this.#clock.nowMs())
      } else {
        const creation = { ring: name, namespace, log: this.#log, ...bounded }
        const lease = await (action.verb === 'create' ? createLease(leases, action.lease, creation) : leases.update(action.lease, bounded))
        this.#core.done(action, lease as KubeObject<LeaseBody>, sentMs, this.#clock.nowMs())
      }
      this.#failures.succeeded(request)
      if (request === 'renew') this.#isRenewed = true
    } catch (thrown) {
      const nowMs = this.#clock.nowMs()
      const failure = failureOf(action, thrown)
      // What came too late reached the server.
      if (failure !== 'other') this.#failures.succeeded(request)
      else {
        const what = action.kind === 'list' ? { verb: 'list' } : { verb: action.verb, lease: action.lease.metadata.name }
        this.#failed(request, what, errorOf(action, thrown, namespace))
      }
      if (action.kind === 'list') this.#core.listFailed(nowMs)
      else this.#core.failed(action, failure, nowMs)
    }
    this.#changed()
  }
}

function lossText(loss: SlotLoss): string {
  switch (loss.kind) {
    case 'expired':
      return 'its Lease was not renewed in time'
    case 'deleted':
      return 'its Lease was deleted'
    case 'restored':
      return 'the API server has older Leases than before, as after a restore from a backup'
    case 'replaced':
      return loss.holder === '' ? 'another process released its Lease' : 'another process holds its Lease'
  }
}

function failureOf(action: MemberAction, thrown: unknown): WriteFailure {
  if (isReason(thrown, 'Conflict')) return 'Conflict'
  if (isReason(thrown, 'AlreadyExists')) return 'AlreadyExists'
  // A create does not find its namespace, or the server has no Leases: a retry needs a delay, and someone must know.
  return isReason(thrown, 'NotFound') && action.kind === 'write' && action.verb === 'update' ? 'NotFound' : 'other'
}

function errorOf(action: MemberAction, thrown: unknown, namespace: string): Error {
  const isCreate = action.kind === 'write' && action.verb === 'create'
  if (!isCreate || !isReason(thrown, 'NotFound') || thrown.details?.kind !== 'namespaces') return coerceError(thrown)
  return new Error(`the namespace ${JSON.stringify(namespace)} of the ring does not exist`, { cause: thrown })
}
