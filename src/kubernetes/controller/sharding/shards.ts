import { randomBytes } from 'node:crypto'
import { bootClock, type Client, type Clock, type LeaseBody, leaseResource, listWatch } from '../../client/index.ts'
import { isReason, type KubeObject } from '../../object/index.ts'
import { coerceError, type Log } from '../../util/log.ts'
import { type Buckets, bucketOf } from './bucket.ts'
import { ringLabel } from './lease-names.ts'
import { type MemberAction, MemberCore, type WriteFailure } from './member-core.ts'
import { type ShardOptions, type ShardSettings, shardSettingsOf } from './options.ts'
import { type MemberStep, RingMember } from './ring-member.ts'
import { type ShardView, shardViewOf } from './shard-view.ts'
import { ShardedSource, type ShardedSourceOptions } from './sharded-source.ts'
import { type Tenure, Tenures } from './tenures.ts'

/** How often a watch of the Leases that is broken is opened again. */
const watchBackoff = { minMs: 200, maxMs: 2_000 }

export type ShardsParts = { client: Client; log: Log; clock?: Clock | undefined; random?: (() => number) | undefined }

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
  #signal: AbortSignal | undefined
  #hasChanged = false
  #timer: NodeJS.Timeout | undefined
  #gained = 0
  #lost = 0
  #lastError: Error | undefined
  readonly #left = Promise.withResolvers<void>()
  readonly #drained = Promise.withResolvers<void>()

  /** @throws {RangeError} for an option that is out of range. */
  constructor(options: ShardOptions, parts: ShardsParts) {
    const settings = shardSettingsOf(options)
    this.settings = settings
    this.#parts = parts
    this.#clock = parts.clock ?? bootClock
    const processName = `${settings.identity}_${randomBytes(4).toString('hex')}`
    this.#log = parts.log.child({ ring: settings.name, member: processName })
    this.#core = new MemberCore({ ...settings, processName, random: parts.random ?? Math.random, wallMs: Date.now })
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

  /** Why the last request for the Leases failed; undefined if it did not. */
  get lastError(): Error | undefined {
    return this.#lastError
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
        this.#core.observeList(leases, resourceVersion, this.#clock.nowMs())
        this.#changed()
      },
      onEvent: ({ type, object }) => {
        if (type === 'BOOKMARK') return
        const nowMs = this.#clock.nowMs()
        if (type === 'DELETED') this.#core.observeDeletion(object, nowMs)
        else this.#core.observe(object, nowMs)
        this.#changed()
      },
      onError: error => {
        this.#lastError = coerceError(error)
        this.#log.warn({ err: this.#lastError }, 'the Leases of the ring cannot be watched, retrying')
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
    })
  }

  #wake(): void {
    if (!this.#signal || this.#signal.aborted) return
    const nowMs = this.#clock.nowMs()
    const { actions, aborted, wakeAtMs } = this.#member.wake(nowMs)
    if (aborted.length > 0) this.#log.warn({ buckets: aborted }, 'aborting reconciles of buckets that move to another member')
    for (const action of actions) void this.#send(action)
    if (this.#core.hasLeft) this.#left.resolve()
    clearTimeout(this.#timer)
    // The clock has steps of 10 ms.
    if (Number.isFinite(wakeAtMs)) this.#timer = setTimeout(() => this.#wake(), Math.max(1, Math.min(wakeAtMs - nowMs + 1, 60_000)))
  }

  #perform({ slot, wanted, ended, begun, isDrained }: MemberStep): void {
    if (slot === 'claimed') this.#log.info({ slot: this.#core.slot }, 'claimed a slot')
    if (slot === 'lost') this.#log.error({}, 'lost the slot: its Lease was not renewed in time, or another process changed it')
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

  async #send(action: MemberAction): Promise<void> {
    const { namespace, name, renewDeadlineMs } = this.settings
    const leases = this.#parts.client.resource(leaseResource)
    // A hanging request must not keep the next one from being sent in time.
    const bounded = { signal: AbortSignal.timeout(Math.ceil(renewDeadlineMs / 2)) }
    const sentMs = this.#clock.nowMs()
    try {
      if (action.kind === 'list') {
        const { items, metadata } = await leases.listAll({ namespace, labelSelector: `${ringLabel}=${name}`, ...bounded })
        this.#core.listed(items, metadata.resourceVersion, this.#clock.nowMs())
      } else {
        const lease = action.verb === 'create' ? await leases.create(action.lease, bounded) : await leases.update(action.lease, bounded)
        this.#core.done(action, lease as KubeObject<LeaseBody>, sentMs, this.#clock.nowMs())
      }
      this.#lastError = undefined
    } catch (thrown) {
      const nowMs = this.#clock.nowMs()
      const failure = failureOf(thrown)
      if (failure === 'other') {
        this.#lastError = coerceError(thrown)
        this.#log.warn({ err: this.#lastError }, 'a Lease of the ring could not be read or written, retrying')
      }
      if (action.kind === 'list') this.#core.listFailed(nowMs)
      else this.#core.failed(action, failure, nowMs)
    }
    this.#changed()
  }
}

function failureOf(thrown: unknown): WriteFailure {
  if (isReason(thrown, 'Conflict')) return 'Conflict'
  if (isReason(thrown, 'AlreadyExists')) return 'AlreadyExists'
  return isReason(thrown, 'NotFound') ? 'NotFound' : 'other'
}
