/**
 * Members of a ring on virtual time, deterministic by seed, with their server, network and sinks; one file above 400 lines, because the model of
 * a process and what is checked of it belong together. The code of the members is the real one: `MemberCore`, `Tenures`, `RingMember` and
 * `BucketFeeds`; only clocks, requests and timers are simulated.
 *
 * It checks at every step that no two members believe that they own a bucket; that the fence of a sink never refuses the owner and never
 * lets an earlier one through; that a sink without a fence receives from an earlier owner at most the one call that was already begun when
 * its process was stopped; and that no bucket is without an owner for longer than Lease + 2 s after the last fault.
 */
import type { LeaseBody } from '../../client/index.ts'
import type { KubeObject, NewObject } from '../../object/index.ts'
import { Heap } from '../../util/heap.ts'
import { bucketCount } from './bucket.ts'
import { type BucketFeed, BucketFeeds, type FeedChange, mergeDelayMs } from './bucket-feeds.ts'
import type { decideRing } from './decide-ring.ts'
import { type MemberAction, MemberCore, type MemberProgress, type WriteFailure } from './member-core.ts'
import { type MemberStep, RingMember } from './ring-member.ts'
import { type Tenure, Tenures } from './tenures.ts'

type Lease = KubeObject<LeaseBody>

export const simulatedDurations = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 }
/** A call that was checked is done within this time, unless its process or network stands still: the stated pause bound. */
export const pauseBoundMs = simulatedDurations.leaseDurationMs - simulatedDurations.renewDeadlineMs
const requestTimeoutMs = 3_000
const releaseGraceMs = 1_000
/** A bucket may be without an owner for at most the Lease and this. */
const takeoverMs = 2_000
const idleBoundMs = simulatedDurations.leaseDurationMs + takeoverMs
/** Every n-th bucket has a key that is reconciled all the time. */
const sampleEvery = 128

/** What is wrong on purpose, for tests of the simulation. */
export type Defect = {
  decideRing?: typeof decideRing
  /** How long the first member believes in its Lease, and what all Leases say. */
  durations?: { leaseDurationMs: number; renewDeadlineMs: number; recordedSeconds: number }
  /** What the members acknowledge instead of the truth. */
  report?(progress: MemberProgress): MemberProgress
  /** Whether a call may be sent, instead of the truth. */
  mayWrite?(tenure: Tenure): boolean
}

export type SimulationOptions = {
  seed: number
  members?: number
  slots?: number
  /** The slots of the n-th member that starts, as during a rolling change of `slots`; default: `slots`. */
  slotsOf?: ((started: number) => number) | undefined
  defect?: Defect | undefined
  /** Share of the calls that take up to 3 s; default 0.1. */
  longCallRate?: number
  /** Sharded caches of each member; default 1. */
  caches?: number
  log?(atMs: number, text: string, isRoutine: boolean): void
}

export class ShardSimulation {
  readonly options: SimulationOptions
  readonly random: () => number
  readonly members: SimulatedMember[] = []
  readonly slots: number
  nowMs = 0
  readonly #events = new Heap<{ atMs: number; order: number; run: () => void }>(
    (a, b) => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order),
  )
  #order = 0
  readonly #leases = new Map<string, Lease>()
  #revision = 0
  #uids = 0
  #backup: { leases: ReadonlyMap<string, Lease>; revision: number } | undefined
  /** Rises when the server is restored, which breaks all connections. */
  epoch = 0
  /** What was violated, first one first. */
  readonly violations: string[] = []
  /** Who believes that it owns a bucket. */
  readonly owners: (SimulatedMember | undefined)[] = new Array(bucketCount).fill(undefined)
  readonly #idleSinceMs = new Float64Array(bucketCount)
  /** The last owner whose work started, by bucket. */
  readonly #lastOwners: (SimulatedMember | undefined)[] = new Array(bucketCount).fill(undefined)
  readonly moves = new Uint16Array(bucketCount)
  readonly #fences = new Float64Array(bucketCount)
  /** Late calls per tenure at the sink without a fence. */
  readonly #late = new Map<Tenure, number>()
  readonly #latest = new Map<number, Tenure>()
  lastFaultMs = 0
  longestIdleMs = 0
  lateCalls = 0
  calls = 0
  writes = 0

  constructor(options: SimulationOptions) {
    this.options = options
    this.random = mulberry32(options.seed)
    this.slots = options.slots ?? options.members ?? 3
  }

  log(text: string, isRoutine = false): void {
    this.options.log?.(this.nowMs, text, isRoutine)
  }

  start(name: string): SimulatedMember {
    const member = new SimulatedMember(this, name)
    this.members.push(member)
    this.fault()
    for (const lease of this.#leases.values()) member.deliver({ lease, isDeleted: false })
    member.wake()
    return member
  }

  member(name: string): SimulatedMember {
    const member = this.members.find(candidate => candidate.name === name)
    if (!member) throw new RangeError(`no member ${name}`)
    return member
  }

  /** Something happened to a process or its network: ownership may take its full time from here on. */
  fault(): void {
    this.lastFaultMs = this.nowMs
    this.#scheduleIdleChecks()
  }

  after(ms: number, run: () => void): void {
    this.#events.push({ atMs: this.nowMs + ms, order: this.#order++, run })
  }

  advance(ms: number): void {
    const untilMs = this.nowMs + ms
    for (let next = this.#events.peek(); next && next.atMs <= untilMs; next = this.#events.peek()) {
      this.#events.pop()
      this.nowMs = next.atMs
      next.run()
      if (this.violations.length > 20) return
    }
    this.nowMs = untilMs
  }

  violated(text: string): void {
    this.violations.push(`${(this.nowMs / 1_000).toFixed(3)}s ${text}`)
    this.log(`VIOLATION ${text}`)
  }

  list(): { leases: Lease[]; resourceVersion: string } {
    return { leases: [...this.#leases.values()], resourceVersion: String(this.#revision) }
  }

  write(verb: 'create' | 'update', lease: NewObject<LeaseBody>): Lease | WriteFailure {
    const name = lease.metadata.name as string
    const current = this.#leases.get(name)
    if (verb === 'create' && current) return 'AlreadyExists'
    if (verb === 'update' && !current) return 'NotFound'
    if (verb === 'update' && current?.metadata.resourceVersion !== lease.metadata.resourceVersion) return 'Conflict'
    this.writes++
    const metadata = {
      ...lease.metadata,
      name,
      uid: current?.metadata.uid ?? `u${++this.#uids}`,
      resourceVersion: String(++this.#revision),
      creationTimestamp: '',
    }
    const seconds = this.options.defect?.durations?.recordedSeconds
    const spec = seconds === undefined ? lease.spec : { ...lease.spec, leaseDurationSeconds: seconds }
    const stored = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec } as Lease
    this.#leases.set(name, stored)
    for (const member of this.members) member.deliver({ lease: stored, isDeleted: false })
    return stored
  }

  hasLease(name: string): boolean {
    return this.#leases.has(name)
  }

  deleteLease(name: string): void {
    const lease = this.#leases.get(name)
    if (!lease) return
    this.#leases.delete(name)
    const deleted = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(++this.#revision) } }
    for (const member of this.members) member.deliver({ lease: deleted, isDeleted: true })
    this.fault()
  }

  /** Deleted and created again with the same contents, as from a backup of the object: only its UID is another. */
  recreateLease(name: string): void {
    const lease = this.#leases.get(name)
    if (!lease) return
    this.deleteLease(name)
    this.write('create', lease)
    this.log(`${name} is restored with another UID`)
  }

  backUp(): void {
    this.#backup = { leases: new Map(this.#leases), revision: this.#revision }
  }

  /** The server is replaced by its backup, with lower versions; the sinks forget their fences when all previous work has ended. */
  restore(): void {
    if (!this.#backup) throw new RangeError('restore needs a backup: call backUp before')
    this.#leases.clear()
    for (const [name, lease] of this.#backup.leases) this.#leases.set(name, lease)
    this.#revision = this.#backup.revision
    this.epoch++
    this.log('the server is restored from its backup')
    this.fault()
    // Until all members have noticed it.
    this.after(2 * simulatedDurations.retryPeriodMs, () => this.fault())
    this.after(simulatedDurations.renewDeadlineMs, () => {
      this.#fences.fill(0)
      this.#latest.clear()
    })
  }

  /** A member's beliefs may have changed. */
  beliefsChanged(member: SimulatedMember): void {
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      const believes = member.believes(bucket)
      const owner = this.owners[bucket]
      if (believes && owner && owner !== member) {
        // Its belief may have ended with time alone.
        if (owner.believes(bucket)) this.violated(`${owner.name} and ${member.name} both believe that they own bucket ${bucket}`)
      }
      if (believes && owner !== member) {
        this.#idleEnds(bucket, member)
        this.owners[bucket] = member
      } else if (!believes && owner === member) {
        this.owners[bucket] = undefined
        this.#idleSinceMs[bucket] = this.nowMs
      }
    }
  }

  /** A call reaches both sinks: one checks the fence, the other does not. */
  receive(member: SimulatedMember, tenure: Tenure, { begunMs, stoppedMs }: { begunMs: number; stoppedMs: number }): void {
    const { bucket, fence } = tenure
    this.calls++
    const latest = this.#latest.get(bucket)
    if (fence >= this.#fences[bucket]!) this.#fences[bucket] = fence
    else if (tenure.isHeld() && member.isRunning)
      this.violated(`the fence ${fence} of ${member.name}, the owner of bucket ${bucket}, is lower than ${this.#fences[bucket]}`)
    if (latest && latest !== tenure && latest.fence > fence) {
      this.lateCalls++
      const late = (this.#late.get(tenure) ?? 0) + 1
      this.#late.set(tenure, late)
      if (late > 1) this.violated(`${late} calls of ${member.name} for bucket ${bucket} after the next owner's`)
      if (stoppedMs === 0 && this.nowMs - begunMs < pauseBoundMs)
        this.violated(`a call of ${member.name} for bucket ${bucket}, which was never stopped, after the next owner's`)
    } else {
      if (latest && latest !== tenure && latest.fence === fence)
        this.violated(`two owners of bucket ${bucket} have the same fence ${fence}`)
      this.#latest.set(bucket, tenure)
    }
  }

  /** Buckets that no running member owns, and on which none is still working. */
  get idle(): number[] {
    const busy = new Set(this.members.filter(member => member.isRunning).flatMap(member => member.tenures.busy))
    return this.owners.flatMap((owner, bucket) => (owner?.believes(bucket) || busy.has(bucket) ? [] : [bucket]))
  }

  #idleEnds(bucket: number, member: SimulatedMember): void {
    const last = this.#lastOwners[bucket]
    if (last && last !== member) this.moves[bucket]!++
    if (last && this.owners[bucket] === undefined) {
      const idleMs = this.nowMs - this.#idleSinceMs[bucket]!
      if (idleMs > this.longestIdleMs) this.longestIdleMs = idleMs
      const afterFaultMs = Math.min(idleMs, this.nowMs - this.lastFaultMs)
      if (afterFaultMs > idleBoundMs && this.#mustHaveOwners)
        this.violated(`bucket ${bucket} had no owner for ${Math.round(afterFaultMs)} ms without a fault`)
    }
    this.#lastOwners[bucket] = member
  }

  /** A process that is stopped, cut off or leaving can own nothing; someone must be able to. */
  get #mustHaveOwners(): boolean {
    return this.members.some(member => member.isHealthy) && !this.members.some(member => member.isRunning && member.watchDelayMs > 0)
  }

  /** From Lease + 2 s after the last fault until the next one: buckets may be on their way from one owner to the next, for at most 2 s. */
  #scheduleIdleChecks(): void {
    const faultMs = this.lastFaultMs
    let before: readonly number[] | undefined
    const check = () => {
      if (this.lastFaultMs !== faultMs) return
      const idle = this.#mustHaveOwners ? this.idle : []
      const stillIdle = idle.filter(bucket => (!before || before.includes(bucket)) && this.#idleSinceMs[bucket]! <= this.nowMs - takeoverMs)
      if (stillIdle.length > 0)
        this.violated(`${stillIdle.length} buckets have no owner ${this.nowMs - faultMs} ms after the last fault, such as ${stillIdle[0]}`)
      before = idle
      if (stillIdle.length === 0) this.after(takeoverMs, check)
    }
    this.after(idleBoundMs, check)
  }
}

type Delivery = { lease: Lease; isDeleted: boolean }

/** One process: its own clock, its network, and work on the buckets that it owns. */
export class SimulatedMember {
  readonly name: string
  readonly core: MemberCore
  readonly tenures: Tenures
  readonly #simulation: ShardSimulation
  #isCutOff = false
  #isHealing = false
  #isPaused = false
  #isDead = false
  #isStopping = false
  #jumpMs = 0
  /** Of responses. */
  lossRate = 0
  /** Of watch events, on top of the network's. */
  watchDelayMs = 0
  #deliverAtMs = 0
  #missed: Delivery[] = []
  #resumed: (() => void)[] = []
  #wakeAtMs = Number.POSITIVE_INFINITY
  readonly #member: RingMember
  readonly #caches: SimulatedCache[] = []
  /** For how long the process was stopped since each call began. */
  #stoppedCount = 0
  #isEnding = false

  constructor(simulation: ShardSimulation, name: string) {
    const { defect } = simulation.options
    this.#simulation = simulation
    this.name = name
    this.core = new MemberCore({
      name: 'op',
      namespace: 'a',
      slots: simulation.options.slotsOf?.(simulation.members.length) ?? simulation.slots,
      ...simulatedDurations,
      ...(simulation.members.length === 0 && defect?.durations),
      processName: name,
      random: simulation.random,
      wallMs: () => 1e12 + simulation.nowMs,
      decideRing: defect?.decideRing,
    })
    this.tenures = new Tenures({ isValid: () => this.core.isValid(this.clockMs), releaseGraceMs })
    for (let count = simulation.options.caches ?? 1; count > 0; count--) this.#caches.push(this.#cache())
    this.#member = new RingMember({
      core: this.core,
      tenures: this.tenures,
      caches: () => this.#caches,
      perform: step => this.#perform(step),
      report: defect?.report,
    })
    this.#jumpMs = name.length * 1_000_000
  }

  get clockMs(): number {
    return this.#simulation.nowMs + this.#jumpMs
  }

  get isRunning(): boolean {
    return !this.#isPaused && !this.#isDead
  }

  /** Can own buckets, or get a slot. */
  get isHealthy(): boolean {
    return this.isRunning && !this.#isCutOff && !this.#isStopping && this.lossRate === 0 && this.watchDelayMs === 0
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** Whether it believes, by its own clock, that it may work on a bucket. A stopped process believes nothing. */
  believes(bucket: number): boolean {
    const tenure = this.isRunning ? this.tenures.find(bucket) : undefined
    return tenure !== undefined
  }

  kill(): void {
    this.#isDead = true
    this.#simulation.fault()
    this.#simulation.beliefsChanged(this)
    this.#simulation.log(`${this.name} is killed`)
  }

  pause(): void {
    if (this.#isDead) return
    this.#isPaused = true
    this.#stoppedCount++
    this.#simulation.fault()
    this.#simulation.beliefsChanged(this)
    this.#simulation.log(`${this.name} is paused`)
  }

  resume(): void {
    if (!this.#isPaused || this.#isDead) return
    this.#isPaused = false
    this.#simulation.fault()
    this.#simulation.log(`${this.name} resumes`)
    for (const run of this.#resumed.splice(0)) run()
    this.wake()
    this.#simulation.beliefsChanged(this)
  }

  cut(): void {
    this.#isCutOff = true
    this.#simulation.fault()
    this.#simulation.log(`${this.name} is cut off`)
  }

  heal(): void {
    this.#isCutOff = false
    this.#isHealing = true
    this.#simulation.fault()
    this.#simulation.log(`${this.name} is connected again`)
    // The watch reconnects and resumes from its version.
    this.#simulation.after(500, () => {
      for (const delivery of this.#missed.splice(0)) this.deliver(delivery)
    })
  }

  /** Its clock advances, as if its machine had been suspended. */
  jump(ms: number): void {
    this.#jumpMs += ms
    this.#simulation.fault()
    this.#simulation.log(`the clock of ${this.name} jumps by ${ms / 1_000} s`)
    this.wake()
    this.#simulation.beliefsChanged(this)
  }

  /** Its watch is late by `delayMs` for a while, and all that it delivers stays in order. */
  delayWatch(delayMs: number, forMs: number): void {
    this.watchDelayMs = delayMs
    this.#simulation.fault()
    this.#simulation.log(`the watch of ${this.name} is ${delayMs / 1_000} s late`)
    this.#simulation.after(forMs, () => {
      this.#simulation.after(Math.max(0, this.#deliverAtMs - this.#simulation.nowMs), () => {
        this.watchDelayMs = 0
        this.#simulation.fault()
        this.#simulation.log(`the watch of ${this.name} is in time again`)
      })
      this.watchDelayMs = 1
    })
  }

  /** SIGTERM: the buckets pass to others, then the slot is released. */
  stop(graceMs = 10_000): void {
    this.#isStopping = true
    this.#simulation.fault()
    this.#simulation.log(`${this.name} is stopping`)
    this.#member.leave()
    this.#simulation.after(graceMs, () => this.#run(() => this.#end()))
    this.wake()
  }

  deliver(delivery: Delivery): void {
    if (this.#isDead) return
    if (this.#isCutOff) {
      this.#missed.push(delivery)
      return
    }
    const { random, nowMs, epoch } = this.#simulation
    // In order, whatever their delays.
    this.#deliverAtMs = Math.max(this.#deliverAtMs, nowMs + 2 + random() * 10 + this.watchDelayMs)
    this.#simulation.after(this.#deliverAtMs - nowMs, () =>
      this.#run(() => {
        if (epoch !== this.#simulation.epoch) return
        if (this.#isCutOff) {
          this.#missed.push(delivery)
          return
        }
        if (delivery.isDeleted) this.core.observeDeletion(delivery.lease, this.clockMs)
        else this.core.observe(delivery.lease, this.clockMs)
        this.wake()
      }),
    )
  }

  /** Asks the core what to do. */
  wake(): void {
    if (!this.isRunning) return
    const { actions, wakeAtMs } = this.#member.wake(this.clockMs)
    for (const action of actions) this.#send(action)
    if (!Number.isFinite(wakeAtMs)) return
    const atMs = this.#simulation.nowMs + Math.max(0, wakeAtMs - this.clockMs)
    if (atMs >= this.#wakeAtMs) return
    this.#wakeAtMs = atMs
    this.#simulation.after(atMs - this.#simulation.nowMs, () => {
      if (this.#wakeAtMs === atMs) this.#wakeAtMs = Number.POSITIVE_INFINITY
      this.#run(() => this.wake())
    })
  }

  /** Runs now, or when the process continues. */
  #run(run: () => void): void {
    if (this.#isDead) return
    if (this.#isPaused) this.#resumed.push(run)
    else run()
  }

  /** As the process does. */
  #perform({ slot, wanted, ended, begun, isDrained }: MemberStep): void {
    if (slot) this.#simulation.log(slot === 'claimed' ? `${this.name} has slot ${this.core.slot}` : `${this.name} has no slot any more`)
    if (ended.length > 0) this.#simulation.log(`${this.name} stops ${ended.length} buckets`)
    if (begun.length > 0) this.#simulation.log(`${this.name} starts ${begun.length} buckets, fence ${this.core.orders?.fence}`)
    if (begun.length + ended.length > 0) this.#simulation.beliefsChanged(this)
    if (wanted) for (const cache of this.#caches) cache.setWanted(wanted)
    for (const bucket of begun) if (bucket % sampleEvery === 0) this.#work(bucket)
    // The manager ends the rest as soon as the others have the buckets.
    if (isDrained && !this.#isEnding) this.#simulation.after(0, () => this.#run(() => this.#end()))
  }

  #end(): void {
    this.#isEnding = true
    this.#member.end()
    this.wake()
  }

  #cache(): SimulatedCache {
    return new SimulatedCache({
      violated: text => this.#simulation.violated(`${this.name}: ${text}`),
      version: () => this.#simulation.list().resourceVersion,
      after: (ms, run) => this.#simulation.after(ms, () => this.#run(run)),
      listMs: () => 20 + this.#simulation.random() * 400,
      isCutOff: () => this.#isCutOff,
      onSynced: () => this.wake(),
    })
  }

  #send(action: MemberAction): void {
    const simulation = this.#simulation
    const { random, epoch } = simulation
    const sentMs = this.clockMs
    const fail = () => {
      if (action.kind === 'list') this.core.listFailed(this.clockMs)
      else this.core.failed(action, 'other', this.clockMs)
      this.wake()
    }
    if (this.#isCutOff) {
      simulation.after(random() < 0.5 ? 5 : requestTimeoutMs, () => this.#run(fail))
      return
    }
    const isSlow = random() < 0.02
    simulation.after(2 + random() * (isSlow ? 900 : 10), () => {
      if (epoch !== simulation.epoch) {
        this.#run(fail)
        return
      }
      // The request has left the process: it arrives even if that was killed meanwhile.
      const result = action.kind === 'list' ? simulation.list() : simulation.write(action.verb, action.lease)
      if (action.kind === 'write') this.#logWrite(action, result as Lease | WriteFailure)
      if (this.#isCutOff || random() < this.lossRate) {
        simulation.fault()
        // It lasts until the request fails: before, the process knows nothing of it.
        const failLate = () => {
          simulation.fault()
          fail()
        }
        simulation.after(random() < 0.5 ? 5 : requestTimeoutMs, () => this.#run(failLate))
        return
      }
      simulation.after(2 + random() * (isSlow ? 900 : 10), () =>
        this.#run(() => {
          if (epoch !== simulation.epoch) {
            fail()
            return
          }
          // The cut lasts until the first response: before, requests were waiting for their timeouts.
          if (this.#isHealing) simulation.fault()
          this.#isHealing = false
          if (action.kind === 'list') {
            const { leases, resourceVersion } = result as ReturnType<ShardSimulation['list']>
            this.core.listed(leases, resourceVersion, this.clockMs)
          } else if (typeof result === 'string') this.core.failed(action, result, this.clockMs)
          else this.core.done(action, result as Lease, sentMs, this.clockMs)
          this.wake()
        }),
      )
    })
  }

  #logWrite(action: MemberAction & { kind: 'write' }, result: Lease | WriteFailure): void {
    const { purpose, lease } = action
    const name = lease.metadata.name ?? ''
    if (typeof result === 'string') this.#simulation.log(`${purpose} of ${name} by ${this.name} is rejected: ${result}`)
    else if (purpose === 'renew') this.#simulation.log(`${name}: renewed by ${this.name}`, true)
    else if (purpose === 'ring') this.#simulation.log(`ring ${lease.spec?.leaseTransitions} is written by ${this.name}`)
    else this.#simulation.log(`${name}: ${purpose} by ${this.name}`)
  }

  /** A key of the bucket is reconciled again and again: each time it checks, calls the sinks, and waits for the response. */
  #work(bucket: number): void {
    const simulation = this.#simulation
    const { defect } = simulation.options
    const tenure = this.tenures.find(bucket)
    if (!tenure) return
    const mayWrite = () => defect?.mayWrite?.(tenure) ?? tenure.mayWrite()
    const end = this.tenures.begin(tenure)
    let callsLeft = 1 + Math.floor(simulation.random() * 3)
    const finish = () => {
      end()
      this.wake()
      simulation.after(200 + simulation.random() * 2_000, () => this.#run(() => tenure.isHeld() && this.#work(bucket)))
    }
    const call = () =>
      this.#run(() => {
        if (!mayWrite() || callsLeft-- === 0) {
          finish()
          return
        }
        const stoppedBefore = this.#stoppedCount
        const begunMs = simulation.nowMs
        // A process may be stopped between its check and its call.
        const send = () =>
          simulation.after(2 + simulation.random() * (simulation.random() < (simulation.options.longCallRate ?? 0.1) ? 3_000 : 50), () => {
            if (!this.#isCutOff) simulation.receive(this, tenure, { begunMs, stoppedMs: this.#stoppedCount - stoppedBefore })
            simulation.after(2 + simulation.random() * 300, call)
          })
        simulation.after(simulation.random() * 2, () => this.#run(send))
      })
    call()
  }
}

type SimulatedCacheOptions = {
  violated(text: string): void
  /** Of the server. */
  version(): string
  /** Runs while the process does. */
  after(ms: number, run: () => void): void
  listMs(): number
  isCutOff(): boolean
  onSynced(): void
}

/** A cache whose lists take time, and fail while the network of its process is cut. */
class SimulatedCache {
  readonly #options: SimulatedCacheOptions
  readonly #feeds = new BucketFeeds()
  #changes = 0

  constructor(options: SimulatedCacheOptions) {
    this.#options = options
  }

  get synced(): Uint8Array {
    return this.#feeds.synced
  }

  setWanted(wanted: Uint8Array<ArrayBuffer>): void {
    this.#feeds.setWanted(wanted)
    this.#perform(this.#feeds.adjust())
    this.#mergeLater()
  }

  #mergeLater(): void {
    const change = ++this.#changes
    this.#options.after(mergeDelayMs, () => {
      if (change === this.#changes) this.#perform(this.#feeds.merge())
    })
  }

  #perform({ started }: FeedChange): void {
    if (started && !started.resumed) this.#list(started, this.#options.listMs())
    this.#check()
  }

  #list(feed: BucketFeed, afterMs: number): void {
    this.#options.after(afterMs, () => {
      if (!this.#feeds.open.has(feed)) return
      if (this.#options.isCutOff()) {
        this.#list(feed, 1_000)
        return
      }
      if (!this.#feeds.received(feed, this.#options.version())) return
      this.#mergeLater()
      this.#check()
      this.#options.onSynced()
    })
  }

  /** Each wanted bucket is in exactly one watch, and no other bucket is in one. */
  #check(): void {
    const { wanted, synced, open } = this.#feeds
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      let watches = 0
      for (const { buckets } of open) watches += buckets[bucket]!
      if (watches !== wanted[bucket] || synced[bucket]! > wanted[bucket]!) {
        this.#options.violated(`bucket ${bucket} is in ${watches} watches, wanted ${wanted[bucket]}, synced ${synced[bucket]}`)
        return
      }
    }
  }
}

/** A small generator of random numbers by seed. */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}

const faults = [
  'kill',
  'kill',
  'pause',
  'pause',
  'cut',
  'cut',
  'jump',
  'stop',
  'lossy',
  'slow-watch',
  'start',
  'delete-lease',
  'delete-ring',
] as const

/** One history of faults by its seed; returns the simulation, with its violations. */
export function simulateFaults(seed: number, defect?: Defect, log?: SimulationOptions['log']): ShardSimulation {
  const size = 2 + (seed % 4)
  const simulation = new ShardSimulation({
    seed,
    members: size,
    slots: size + (seed % 3 === 0 ? 1 : 0),
    caches: 1 + (seed % 2),
    // In every fourth history the members have other numbers of slots, from 1 to size + 2.
    slotsOf: seed % 4 === 3 ? started => 1 + ((seed + started * 3) % (size + 2)) : undefined,
    defect,
    ...(log && { log }),
  })
  const { random } = simulation
  let started = 0
  let slotDeletedMs = Number.NEGATIVE_INFINITY
  for (let count = 0; count < size; count++) {
    simulation.start(`m${started++}`)
    simulation.advance(random() * 500)
  }
  const count = 3 + Math.floor(random() * 6)
  for (let fault = 0; fault < count; fault++) {
    simulation.advance(random() < 0.3 ? random() * 1_000 : random() * 40_000)
    const alive = simulation.members.filter(member => !member.isDead && !member.core.hasLeft)
    const member = alive[Math.floor(random() * alive.length)]
    const kind = faults[Math.floor(random() * faults.length)]
    const forMs = random() * 40_000
    const replace = () => simulation.after(random() * 5_000, () => simulation.start(`m${started++}`))
    if (!member || kind === 'start') {
      if (alive.length < size + 2) simulation.start(`m${started++}`)
    } else if (kind === 'kill') {
      member.kill()
      replace()
    } else if (kind === 'stop') {
      member.stop()
      replace()
    } else if (kind === 'pause') {
      member.pause()
      simulation.after(forMs, () => member.resume())
    } else if (kind === 'cut') {
      member.cut()
      simulation.after(forMs, () => member.heal())
    } else if (kind === 'jump') {
      member.jump(forMs * 2)
    } else if (kind === 'lossy') {
      member.lossRate = random() * 0.8
      simulation.log(`${member.name} loses ${Math.round(member.lossRate * 100)} % of the responses`)
      simulation.after(forMs, () => {
        member.lossRate = 0
        simulation.fault()
      })
    } else if (kind === 'slow-watch') {
      member.delayWatch(random() * 20_000, forMs)
    } else if (kind === 'delete-lease') {
      const name = `op-${Math.floor(random() * size)}`
      // Both may be missing only while no replica runs: no process knows of the member then (docs/sharding.md, "Limits").
      if (!simulation.hasLease('op-ring')) continue
      slotDeletedMs = simulation.nowMs
      simulation.deleteLease(name)
    } else if (kind === 'delete-ring') {
      if (simulation.nowMs - slotDeletedMs > simulatedDurations.leaseDurationMs) simulation.deleteLease('op-ring')
    }
    if (simulation.violations.length > 0) return simulation
  }
  simulation.advance(60_000)
  return simulation
}
