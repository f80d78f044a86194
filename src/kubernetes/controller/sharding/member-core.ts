/**
 * The whole of one member's part in the protocol: slots, renewals, expiry, the ring, acknowledgements. One file above 400 lines, because its
 * rules refer to each other and must be read together. `observe…` and `done`/`failed` take in what happened, `decide` returns what to send.
 */
import { compareResourceVersions, type LeaseBody } from '../../client/index.ts'
import { type KubeObject, type NewObject, rfc3339Micro } from '../../object/index.ts'
import { bucketCount } from './bucket.ts'
import { decideRing, type Slot } from './decide-ring.ts'
import { fenceOf } from './fence.ts'
import { ringAnnotation, ringLabel, ringLeaseName, slotLeaseName, slotOfLease } from './lease-names.ts'
import { formatReport, type MemberReport, noReport, parseReport, reportAnnotation } from './member-report.ts'
import { differenceOf, type OperatorReport, operatorReportOf } from './operator-report.ts'
import type { ShardSettings } from './options.ts'
import { formatRing, isRingVersion, maxSessionLength, parseRing, type Ring } from './ring.ts'

type Lease = KubeObject<LeaseBody>

/** A request that the shell should send. At most one of each purpose is in flight, of evictions one for each slot. */
export type MemberAction = { readonly kind: 'list' } | MemberWrite

type MemberWrite = {
  readonly kind: 'write'
  readonly purpose: 'claim' | 'renew' | 'release' | 'evict' | 'ring'
  readonly verb: 'create' | 'update'
  /** An update carries the resourceVersion that it was decided from. */
  readonly lease: NewObject<LeaseBody>
}

export type WriteFailure = 'Conflict' | 'AlreadyExists' | 'NotFound' | 'other'

/** How far the shell has come with the orders of the ring. */
export type MemberProgress = Pick<MemberReport, 'ring' | 'stopped' | 'prepared' | 'busy'>

/** What the ring lets this member do. */
export type MemberOrders = {
  readonly slot: number
  readonly session: string
  readonly ringUid: string
  readonly version: number
  readonly fence: number
  /** Whether the ring has this session: until then, nothing is allowed or wanted. */
  readonly isMember: boolean
  /** 1 for buckets that it may work on while its Lease is valid. */
  readonly allowed: Uint8Array<ArrayBuffer>
  /** 1 for buckets that its caches should have. */
  readonly wanted: Uint8Array<ArrayBuffer>
}

/** Why a member lost its slot, other than by its own release. */
export type SlotLoss =
  | { readonly kind: 'expired' | 'deleted' | 'restored' }
  /** Another process wrote the holder of its Lease; empty: it cleared it. */
  | { readonly kind: 'replaced'; readonly holder: string }

type Own = { slot: number; session: string; validUntilMs: number; sentMs: number }
type Seen = { lease: Lease; slot: Slot; durationMs: number; seenMs: number }

/** Between a change of who is a member, and the ring that follows: several changes make one ring. */
const membershipSettleMs = 200
const settleMs = 100
/** Members act in the order of their slots, so that usually only the first one writes. */
const rankDelayMs = 100
const maxRank = 4
/** A Lease that claims to last longer, and longer than this process's own, is believed for this long only. */
const maxLeaseDurationMs = 600_000
/** An int32: the API server refuses more. */
const maxTransitions = 2 ** 31 - 1

export type MemberCoreOptions = Pick<
  ShardSettings,
  'name' | 'namespace' | 'slots' | 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'
> & {
  /** Unique for each process, such as `pod-1_3f2a90c1`. */
  processName: string
  /** In [0, 1). */
  random(): number
  /** For times in the records, which are for people only. */
  wallMs(): number
  /** Names of the sharded controllers, reported with the settings for others to compare; default: neither is reported. */
  controllers?: (() => readonly string[]) | undefined
  /** Added to the Lease of the slot with each claim and renewal; default: nothing. Must not throw. */
  annotations?: (() => Readonly<Record<string, string>> | undefined) | undefined
  /** For tests of what finds a wrong decision; default: {@link decideRing}. */
  decideRing?: typeof decideRing | undefined
}

export class MemberCore {
  readonly #options: MemberCoreOptions
  readonly #seen = new Map<number, Seen>()
  /** Since when the Lease of a slot is missing although the ring has a member there. */
  readonly #missingSinceMs = new Map<number, number>()
  readonly #inFlight = new Set<string>()
  #ringLease: Lease | undefined
  #ring: Ring | undefined
  #knownVersion = 0
  #hasListed = false
  #mustList = true
  #heardMs = Number.NEGATIVE_INFINITY
  #listRetryMs = Number.NEGATIVE_INFINITY
  #ownRetryMs = Number.NEGATIVE_INFINITY
  #evictRetryMs = Number.NEGATIVE_INFINITY
  #ringRetryMs = Number.NEGATIVE_INFINITY
  #own: Own | undefined
  /** A claim that was sent; it counts also when its response was lost. */
  #claim: Own | undefined
  #sessions = 0
  #hasCollided = false
  #progress: MemberProgress = noReport
  #sentReport: MemberReport | undefined
  #state: 'joining' | 'lost' | 'left' = 'joining'
  #isLeaving = false
  #isOnStandby = false
  #loss: SlotLoss | undefined
  /** Of this process's last write that was answered. */
  #writtenVersion = ''
  #listVersion = ''
  /** The highest version known when the list in flight was sent. */
  #sentListAfter = ''
  #mustRelease = false
  #nextRing: { ring: Ring | undefined } | undefined
  #pendingSinceMs: number | undefined
  #orders: MemberOrders | undefined

  constructor(options: MemberCoreOptions) {
    this.#options = options
  }

  /** Whether this process may act as a member at this instant. */
  isValid(nowMs: number): boolean {
    return this.#own !== undefined && nowMs < this.#own.validUntilMs
  }

  /** The slot that this process has; undefined while it waits for one. */
  get slot(): number | undefined {
    return this.#own?.slot
  }

  /** When this process stops being valid unless a renewal succeeds. */
  get validUntilMs(): number {
    return this.#own?.validUntilMs ?? Number.NEGATIVE_INFINITY
  }

  /** It lost its slot: the shell ends all work and calls {@link ended}. */
  get isLost(): boolean {
    return this.#state === 'lost'
  }

  /** It has no slot because other processes have all of them. */
  get isOnStandby(): boolean {
    return this.#isOnStandby
  }

  /** Why it lost its last slot; undefined if it has one, or never had one. */
  get loss(): SlotLoss | undefined {
    return this.#loss
  }

  /** It has released its slot and sends nothing more. */
  get hasLeft(): boolean {
    return this.#state === 'left'
  }

  /** Members with valid Leases that cannot belong to the same operator, each with why. */
  foreignMembers(nowMs: number): string[] {
    const own = this.#operatorReport()
    if (!own) return []
    return [...this.#seen].flatMap(
      ([
        slot,
        {
          slot: { session, report },
          seenMs,
          durationMs,
        },
      ]) => {
        if (session === '' || this.#isOurs(session) || nowMs >= seenMs + durationMs || !report.operator) return []
        const difference = differenceOf(own, report.operator)
        return difference ? [`the member ${session} of slot ${slot} ${difference}`] : []
      },
    )
  }

  #operatorReport(): OperatorReport | undefined {
    const { controllers } = this.#options
    return controllers && operatorReportOf(this.#options, controllers())
  }

  get ringVersion(): number {
    return this.#ring?.version ?? 0
  }

  get leases(): Lease[] {
    const leases = [...this.#seen.values()].map(({ lease }) => lease)
    if (this.#ringLease) leases.push(this.#ringLease)
    return leases
  }

  /** What the ring lets this member do; undefined without a slot, or while the ring does not have this session. */
  get orders(): MemberOrders | undefined {
    const own = this.#own
    const ring = this.#ring
    if (!own || !ring || !this.#ringLease) return undefined
    const { uid, resourceVersion } = this.#ringLease.metadata
    const before = this.#orders
    if (before?.session === own.session && before.ringUid === uid && before.version === ring.version) return before
    const isMember = ring.members.get(own.slot)?.session === own.session
    const { holders, targets, releasing } = ring
    this.#orders = {
      slot: own.slot,
      session: own.session,
      ringUid: uid,
      version: ring.version,
      fence: fenceOf(resourceVersion, ring.version),
      isMember,
      allowed: new Uint8Array(bucketCount),
      wanted: new Uint8Array(bucketCount),
    }
    if (!isMember) return this.#orders
    const { allowed, wanted } = this.#orders
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      const isHolder = holders[bucket] === own.slot
      if (isHolder && releasing[bucket] === 0) allowed[bucket] = 1
      if (isHolder || targets[bucket] === own.slot) wanted[bucket] = 1
    }
    return this.#orders
  }

  /** No bucket is held any more, or no other member could take one: all work may end, and then {@link release} is due. */
  isDrained(nowMs: number): boolean {
    const own = this.#own
    const ring = this.#ring
    if (!own || !ring || ring.members.get(own.slot)?.session !== own.session) return true
    if (!ring.holders.includes(own.slot)) return true
    return ![...this.#seen].some(
      ([slot, seen]) =>
        slot !== own.slot &&
        (slot < this.#options.slots || ring.members.has(slot)) &&
        seen.slot.session !== '' &&
        !seen.slot.report.isLeaving &&
        nowMs < seen.seenMs + seen.durationMs,
    )
  }

  /** The process wants to stop: others should take its buckets. */
  leave(): void {
    this.#isLeaving = true
    this.#nextRing = undefined
  }

  /** All work has ended: the slot is released. Without a slot there is nothing to release. */
  release(): void {
    this.#isLeaving = true
    this.#mustRelease = true
    if (!this.#own) this.#state = 'left'
  }

  /** After a loss: all work has ended, a slot may be claimed again. */
  ended(): void {
    if (this.#state === 'lost') this.#state = this.#isLeaving ? 'left' : 'joining'
  }

  report(progress: MemberProgress): void {
    this.#progress = progress
  }

  /** A watch event. */
  observe(lease: Lease, nowMs: number): void {
    this.#hearEvent(lease, nowMs)
    // A late event must not bring back a Lease that the list did not have any more.
    if (compareResourceVersions(lease.metadata.resourceVersion, this.#listVersion) > 0) this.#observe(lease, nowMs)
  }

  /** A deletion that a watch reported. */
  observeDeletion(lease: Lease, nowMs: number): void {
    this.#hearEvent(lease, nowMs)
    const { name, resourceVersion } = lease.metadata
    if (name === ringLeaseName(this.#options.name)) {
      if (this.#ringLease && compareResourceVersions(resourceVersion, this.#ringLease.metadata.resourceVersion) >= 0) this.#forgetRing()
      return
    }
    const slot = slotOfLease(this.#options.name, name)
    const seen = slot === undefined ? undefined : this.#seen.get(slot)
    if (slot !== undefined && seen && compareResourceVersions(resourceVersion, seen.lease.metadata.resourceVersion) >= 0)
      this.#forget(slot, nowMs)
  }

  /** The response to a list that {@link decide} asked for: the server has answered from its current state. */
  listed(leases: readonly Lease[], resourceVersion: string, nowMs: number): void {
    if (compareResourceVersions(resourceVersion, this.#sentListAfter) < 0) this.#restored(nowMs)
    this.observeList(leases, resourceVersion, nowMs)
  }

  /** A list as of `resourceVersion`, which may be older than what is known. */
  observeList(leases: readonly Lease[], resourceVersion: string, nowMs: number): void {
    this.#inFlight.delete('list')
    this.#hear(nowMs)
    this.#hasListed = true
    this.#mustList = false
    this.#listRetryMs = nowMs + this.#options.retryPeriodMs / 20
    const isLower = ({ metadata }: Lease) => {
      const slot = slotOfLease(this.#options.name, metadata.name)
      const known = (slot === undefined ? this.#ringLease : this.#seen.get(slot)?.lease)?.metadata
      if (!known || known.name !== metadata.name) return false
      const [current, before] = [metadata.resourceVersion, known.resourceVersion]
      return compareResourceVersions(current, before) < 0 && compareResourceVersions(before, resourceVersion) <= 0
    }
    if (leases.some(isLower)) this.#restored(nowMs)
    if (compareResourceVersions(resourceVersion, this.#listVersion) > 0) this.#listVersion = resourceVersion
    const isGone = (lease: Lease) =>
      compareResourceVersions(lease.metadata.resourceVersion, resourceVersion) <= 0 &&
      !leases.some(({ metadata }) => metadata.uid === lease.metadata.uid)
    for (const [slot, { lease }] of this.#seen) if (isGone(lease)) this.#forget(slot, nowMs)
    if (this.#ringLease && isGone(this.#ringLease)) this.#forgetRing()
    for (const lease of leases) this.#observe(lease, nowMs)
    for (const slot of this.#ring?.members.keys() ?? [])
      if (!this.#seen.has(slot) && !this.#missingSinceMs.has(slot)) this.#missingSinceMs.set(slot, nowMs)
  }

  listFailed(nowMs: number): void {
    this.#inFlight.delete('list')
    this.#listRetryMs = nowMs + this.#options.retryPeriodMs / 2
  }

  /** The response of a write; `sentMs` is when it was sent, by the monotonic clock. */
  done(action: MemberWrite, lease: Lease, sentMs: number, nowMs: number): void {
    this.#inFlight.delete(flightOf(action))
    this.#hasCollided = false
    if (action.purpose === 'release') this.#left()
    if (action.purpose === 'renew' && this.#own?.session === action.lease.spec?.holderIdentity) this.#extend(sentMs, nowMs)
    this.#writtenVersion = lease.metadata.resourceVersion
    this.#observe(lease, nowMs)
  }

  failed(action: MemberWrite, reason: WriteFailure, nowMs: number): void {
    this.#inFlight.delete(flightOf(action))
    const { retryPeriodMs } = this.#options
    // What we know is outdated, or it is not known whether the write happened.
    this.#mustList = true
    const retryMs = nowMs + (reason === 'other' ? retryPeriodMs / 2 : 0)
    if (action.purpose === 'ring') this.#ringRetryMs = retryMs
    else if (action.purpose === 'evict') this.#evictRetryMs = retryMs
    else this.#ownRetryMs = Math.max(this.#ownRetryMs, retryMs)
    if (action.purpose === 'claim' && reason !== 'other') {
      this.#claim = undefined
      this.#hasCollided = true
    }
    // It is not known what the report of the server is: the next one is sent without waiting.
    if (action.purpose === 'renew') this.#sentReport = undefined
    // The Lease was deleted: another process may claim the slot as soon as it is sure that this one has ended.
    if (action.purpose === 'renew' && reason === 'NotFound') this.#lose({ kind: 'deleted' })
    if (action.purpose === 'release' && reason !== 'other') this.#left()
  }

  /** What to send now, and when to ask again at the latest. Ask also after each observation, response and report. */
  decide(nowMs: number): { actions: MemberAction[]; wakeAtMs: number } {
    const actions: MemberAction[] = []
    let wakeAtMs = Number.POSITIVE_INFINITY
    const at = (dueMs: number): boolean => {
      if (nowMs >= dueMs) return true
      wakeAtMs = Math.min(wakeAtMs, dueMs)
      return false
    }
    if (this.#own && at(this.#own.validUntilMs)) this.#lose({ kind: 'expired' })
    if (this.#state === 'left') return { actions, wakeAtMs }
    const send = (action: MemberAction) => {
      this.#inFlight.add(action.kind === 'list' ? 'list' : flightOf(action))
      actions.push(action)
    }
    const { retryPeriodMs } = this.#options
    // Own renewals come back on the watch: silence means that the watch is broken or delayed.
    const isSilent = this.#hasListed && at(Math.max(this.#heardMs + retryPeriodMs * 1.5, this.#listRetryMs))
    if ((this.#mustList || isSilent) && !this.#inFlight.has('list') && at(this.#listRetryMs)) {
      // A silent time is counted from here on, or every decision would list again.
      this.#listRetryMs = nowMs + retryPeriodMs / 2
      this.#sentListAfter = this.#highestVersion()
      send({ kind: 'list' })
    }
    if (!this.#hasListed) return { actions, wakeAtMs }
    if (!this.#inFlight.has('own') && at(this.#ownRetryMs)) this.#decideOwn(nowMs, at, send)
    if (this.isValid(nowMs)) {
      if (at(this.#evictRetryMs)) this.#decideEvictions(nowMs, at, send)
      if (!this.#inFlight.has('ring') && at(this.#ringRetryMs)) this.#decideRing(nowMs, at, send)
    }
    return { actions, wakeAtMs }
  }

  #decideOwn(nowMs: number, at: (dueMs: number) => boolean, send: (action: MemberAction) => void): void {
    const own = this.#own
    if (own) {
      const seen = this.#seen.get(own.slot)
      if (!seen || this.#mustList) return
      if (this.#mustRelease) {
        send(this.#write('release', seen.lease, '', noReport, own.slot))
        return
      }
      const report = { ...this.#progress, isLeaving: this.#isLeaving, operator: this.#operatorReport() }
      const isAwaited = this.#isAwaited(own, report)
      if (isAwaited || at(own.sentMs + this.#options.retryPeriodMs)) {
        this.#sentReport = report
        own.sentMs = nowMs
        send(this.#write('renew', seen.lease, own.session, report, own.slot))
      }
      return
    }
    if (this.#state !== 'joining' || this.#isLeaving || this.#mustList) return
    const slot = this.#freeSlot(nowMs, at)
    this.#isOnStandby = slot === undefined
    if (slot === undefined) return
    const session = `${this.#options.processName}.${++this.#sessions}`
    this.#claim = { slot, session, sentMs: nowMs, validUntilMs: nowMs + this.#options.renewDeadlineMs }
    this.#progress = noReport
    this.#sentReport = noReport
    send(this.#write('claim', this.#seen.get(slot)?.lease, session, noReport, slot))
  }

  /** Whether the ring waits for what this member can acknowledge now, so that it must not wait for the next renewal. */
  #isAwaited(own: Own, report: MemberReport): boolean {
    const sent = this.#sentReport
    if (!sent || sent.isLeaving !== report.isLeaving) return true
    const member = this.#ring?.members.get(own.slot)
    if (!member || member.session !== own.session || this.#ringLease?.metadata.uid !== report.ring) return false
    const has = (what: MemberReport) => [
      what.ring === report.ring && what.stopped >= member.since,
      what.ring === report.ring && what.prepared >= member.since,
    ]
    const [isStopped, isPrepared] = has(report)
    const [wasStopped, wasPrepared] = has(sent)
    return (isStopped && !wasStopped) || (isPrepared && !wasPrepared) || report.busy.length < sent.busy.length
  }

  /** The slot to claim: one whose buckets are lent first, then the lowest. A collision with another claim makes the choice random. */
  #freeSlot(nowMs: number, at: (dueMs: number) => boolean): number | undefined {
    const free: number[] = []
    for (let slot = 0; slot < this.#options.slots; slot++) {
      const seen = this.#seen.get(slot)
      if (seen) {
        const isFree = seen.slot.session === '' || this.#isOurs(seen.slot.session)
        if (isFree || (at(seen.seenMs + seen.durationMs) && this.#isInContact(nowMs))) free.push(slot)
      } else if (!this.#ring?.members.has(slot) || this.#hasEnded(slot, nowMs)) {
        free.push(slot)
      } else {
        at((this.#missingSinceMs.get(slot) ?? nowMs) + this.#options.leaseDurationMs)
      }
    }
    if (this.#hasCollided) return free[Math.floor(this.#options.random() * free.length)]
    return free.find(slot => this.#ring?.homes.includes(slot)) ?? free[0]
  }

  /**
   * Clears Leases that have expired by this process's clock (invariant 2); the version that was seen must still be the current one. All of them at the same
   * time: members that end together would otherwise be replaced one request after the other.
   */
  #decideEvictions(nowMs: number, at: (dueMs: number) => boolean, send: (action: MemberAction) => void): void {
    const rank = this.#rank(nowMs)
    for (const [slot, seen] of this.#seen) {
      if (slot === this.#own?.slot || seen.slot.session === '') continue
      if (!this.#isOurs(seen.slot.session) && !at(seen.seenMs + seen.durationMs + rank * rankDelayMs)) continue
      if (this.#mustList || !this.#isInContact(nowMs)) return
      const eviction = this.#write('evict', seen.lease, '', noReport, slot)
      if (!this.#inFlight.has(flightOf(eviction))) send(eviction)
    }
  }

  #decideRing(nowMs: number, at: (dueMs: number) => boolean, send: (action: MemberAction) => void): void {
    const missing = [...(this.#ring?.members ?? [])].filter(([slot, { uid }]) => this.#seen.get(slot)?.slot.uid !== uid)
    // Its time passes without anything to observe.
    if (!this.#nextRing || missing.length > 0) {
      const decide = this.#options.decideRing ?? decideRing
      const ring = decide({
        ringUid: this.#ringLease?.metadata.uid,
        ring: this.#ring,
        knownVersion: this.#knownVersion,
        slots: new Map([...this.#seen].map(([slot, seen]) => [slot, seen.slot])),
        slotCount: this.#options.slots,
        hasEnded: slot => this.#hasEnded(slot, nowMs),
      })
      this.#nextRing = { ring }
      for (const [slot] of missing) at((this.#missingSinceMs.get(slot) ?? nowMs) + this.#options.leaseDurationMs)
    }
    const { ring } = this.#nextRing
    if (!ring) {
      this.#pendingSinceMs = undefined
      return
    }
    this.#pendingSinceMs ??= nowMs
    const isMembership = !this.#ring || ring.targets.some((slot, bucket) => slot !== this.#ring!.targets[bucket])
    const delayMs = (isMembership ? membershipSettleMs : settleMs) + this.#rank(nowMs) * rankDelayMs
    if (!at(this.#pendingSinceMs + delayMs) || this.#mustList) return
    const { name } = this.#options
    const before = this.#ringLease
    const spec = {
      holderIdentity: this.#own?.session ?? '',
      leaseDurationSeconds: Math.ceil(this.#options.leaseDurationMs / 1_000),
      renewTime: rfc3339Micro(this.#options.wallMs()),
      leaseTransitions: ring.version,
    }
    const metadata = this.#metadata(ringLeaseName(name), before, { [ringAnnotation]: formatRing(ring) })
    send({ kind: 'write', purpose: 'ring', verb: before ? 'update' : 'create', lease: { ...before, metadata, spec } })
  }

  #write(
    purpose: 'claim' | 'renew' | 'release' | 'evict',
    before: Lease | undefined,
    session: string,
    report: MemberReport,
    slot: number,
  ): MemberWrite {
    const { name, leaseDurationMs, wallMs } = this.#options
    const now = rfc3339Micro(wallMs())
    const isRenewal = purpose === 'renew'
    const spec = {
      holderIdentity: session,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1_000),
      acquireTime: isRenewal ? (before?.spec?.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: Math.min((before?.spec?.leaseTransitions ?? 0) + (purpose === 'claim' && before ? 1 : 0), maxTransitions),
    }
    const added = purpose === 'claim' || purpose === 'renew' ? this.#options.annotations?.() : undefined
    const metadata = this.#metadata(slotLeaseName(name, slot), before, { ...added, [reportAnnotation]: formatReport(report) })
    return { kind: 'write', purpose, verb: before ? 'update' : 'create', lease: { ...before, metadata, spec } }
  }

  /** Without what others added, which could make the Lease too large to be written. */
  #metadata(name: string, before: Lease | undefined, annotations: Record<string, string>): NewObject<LeaseBody>['metadata'] {
    const current = before && { uid: before.metadata.uid, resourceVersion: before.metadata.resourceVersion }
    return { name, namespace: this.#options.namespace, ...current, labels: { [ringLabel]: this.#options.name }, annotations }
  }

  /** This process's place among the members that seem alive: 0 acts first. */
  #rank(nowMs: number): number {
    let rank = 0
    for (const [
      slot,
      {
        slot: { session },
        seenMs,
        durationMs,
      },
    ] of this.#seen)
      if (slot < (this.#own?.slot ?? 0) && session !== '' && nowMs < seenMs + durationMs) rank++
    return Math.min(rank, maxRank)
  }

  #hasEnded(slot: number, nowMs: number): boolean {
    const sinceMs = this.#missingSinceMs.get(slot)
    return sinceMs !== undefined && nowMs >= sinceMs + this.#options.leaseDurationMs && this.#isInContact(nowMs)
  }

  /** Whether anything was heard recently: otherwise the renewals of others may be on the way, and the first thing heard gives them time. */
  #isInContact(nowMs: number): boolean {
    const { leaseDurationMs, renewDeadlineMs } = this.#options
    return nowMs - this.#heardMs <= leaseDurationMs - renewDeadlineMs
  }

  #isOurs(session: string): boolean {
    return session.startsWith(`${this.#options.processName}.`)
  }

  /**
   * A time in which nothing was heard does not count against others: their renewals may be on the way, and a clock that jumped must not make them
   * expire. Later is always safe.
   */
  #hear(nowMs: number): void {
    if (!this.#isInContact(nowMs)) {
      const silentMs = nowMs - this.#heardMs
      for (const seen of this.#seen.values()) seen.seenMs += silentMs
      for (const [slot, sinceMs] of this.#missingSinceMs) this.#missingSinceMs.set(slot, sinceMs + silentMs)
    }
    this.#heardMs = nowMs
  }

  /** An event from before this process's last write shows that the watch is late, not that it is alive. */
  #hearEvent({ metadata: { resourceVersion } }: Lease, nowMs: number): void {
    if (compareResourceVersions(resourceVersion, this.#writtenVersion) >= 0) this.#hear(nowMs)
  }

  #observe(lease: Lease, nowMs: number): void {
    const { name } = this.#options
    if (lease.metadata.name === ringLeaseName(name)) {
      this.#observeRing(lease, nowMs)
      return
    }
    const index = slotOfLease(name, lease.metadata.name)
    if (index === undefined) return
    const before = this.#seen.get(index)
    if (before && compareResourceVersions(lease.metadata.resourceVersion, before.lease.metadata.resourceVersion) <= 0) return
    const report = parseReport(lease.metadata.annotations?.[reportAnnotation]) ?? noReport
    const holder = lease.spec?.holderIdentity ?? ''
    const slot: Slot = { uid: lease.metadata.uid, session: holder.length > maxSessionLength ? '' : holder, report }
    this.#know(report.stopped)
    this.#know(report.prepared)
    // Whatever the Lease says: its holder believes in it for as long as this process would.
    const recordedMs = Math.min((lease.spec?.leaseDurationSeconds ?? 0) * 1_000, maxLeaseDurationMs)
    const durationMs = Math.max(this.#options.leaseDurationMs, recordedMs)
    const isRenewed = !before || JSON.stringify(before.lease.spec) !== JSON.stringify(lease.spec) || before.slot.uid !== slot.uid
    this.#seen.set(index, { lease, slot, durationMs, seenMs: isRenewed ? nowMs : before.seenMs })
    if (
      !before ||
      before.slot.uid !== slot.uid ||
      before.slot.session !== slot.session ||
      JSON.stringify(before.slot.report) !== JSON.stringify(report)
    )
      this.#nextRing = undefined
    // A Lease of another UID proves nothing about the member that the ring has: its own time runs from when its Lease was missed.
    const member = this.#ring?.members.get(index)
    if (member && member.uid !== slot.uid) {
      if (!this.#missingSinceMs.has(index)) this.#missingSinceMs.set(index, nowMs)
    } else this.#missingSinceMs.delete(index)
    const claim = this.#claim
    if (!this.#own && claim?.slot === index && claim.session === slot.session && this.#state === 'joining') {
      this.#own = claim
      this.#loss = undefined
      this.#claim = undefined
    }
    if (this.#own?.slot === index && this.#own.session !== slot.session) this.#lose({ kind: 'replaced', holder: slot.session })
  }

  /** A version that cannot be counted up from would end the ring for good. */
  #know(version: number): void {
    if (isRingVersion(version)) this.#knownVersion = Math.max(this.#knownVersion, version)
  }

  #observeRing(lease: Lease, nowMs: number): void {
    const before = this.#ringLease
    if (before && compareResourceVersions(lease.metadata.resourceVersion, before.metadata.resourceVersion) <= 0) return
    const ring = parseRing(lease.metadata.annotations?.[ringAnnotation])
    this.#ringLease = lease
    this.#know(ring?.version ?? 0)
    this.#ring = ring
    this.#nextRing = undefined
    this.#pendingSinceMs = undefined
    for (const slot of this.#missingSinceMs.keys()) {
      const uid = this.#seen.get(slot)?.slot.uid
      if (uid !== undefined && uid === ring?.members.get(slot)?.uid) this.#missingSinceMs.delete(slot)
    }
    // A ring that was restored or edited may name a Lease that does not exist any more.
    if (this.#hasListed)
      for (const [slot, { uid }] of ring?.members ?? [])
        if (this.#seen.get(slot)?.slot.uid !== uid && !this.#missingSinceMs.has(slot)) this.#missingSinceMs.set(slot, nowMs)
  }

  #forgetRing(): void {
    this.#ringLease = undefined
    this.#ring = undefined
    this.#nextRing = undefined
  }

  #forget(slot: number, nowMs: number): void {
    this.#seen.delete(slot)
    this.#nextRing = undefined
    if (!this.#missingSinceMs.has(slot)) this.#missingSinceMs.set(slot, nowMs)
    if (this.#own?.slot === slot) this.#lose({ kind: 'deleted' })
  }

  #highestVersion(): string {
    let highest = compareResourceVersions(this.#writtenVersion, this.#listVersion) > 0 ? this.#writtenVersion : this.#listVersion
    for (const { metadata } of this.leases)
      if (compareResourceVersions(metadata.resourceVersion, highest) > 0) highest = metadata.resourceVersion
    return highest
  }

  /**
   * The server has lost what this process knows, such as one that was restored from a backup: its ring may give away what members work on that
   * have not noticed it. So a slot is claimed when their Leases have expired.
   */
  #restored(nowMs: number): void {
    this.#seen.clear()
    this.#missingSinceMs.clear()
    this.#forgetRing()
    this.#claim = undefined
    this.#listVersion = ''
    this.#writtenVersion = ''
    this.#sentListAfter = ''
    this.#ownRetryMs = nowMs + this.#options.leaseDurationMs
    this.#lose({ kind: 'restored' })
  }

  #extend(sentMs: number, nowMs: number): void {
    const own = this.#own
    // Invariant 2: a Lease that expired while the response was in flight is not revived.
    if (own && nowMs < own.validUntilMs) own.validUntilMs = Math.max(own.validUntilMs, sentMs + this.#options.renewDeadlineMs)
  }

  #lose(loss: SlotLoss): void {
    if (!this.#own) return
    this.#loss = loss
    this.#own = undefined
    this.#orders = undefined
    this.#state = 'lost'
  }

  #left(): void {
    this.#own = undefined
    this.#orders = undefined
    this.#state = 'left'
  }
}

/** Of two requests with the same flight the second waits for the first. */
function flightOf({ purpose, lease }: MemberWrite): string {
  if (purpose === 'evict') return `evict ${lease.metadata.name}`
  return purpose === 'ring' ? 'ring' : 'own'
}
