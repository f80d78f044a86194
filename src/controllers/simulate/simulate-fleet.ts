import { defaults, durationSampler, type WorkerPoolSpec } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { countStartable, type RunQueue, Scheduler } from '../dispatch/index.ts'
import { settingsOf } from '../stack/index.ts'
import { EventQueue } from './event-queue.ts'
import { Measurements, type SimulationResult } from './measurements.ts'
import { type Profile, serviceTimesOf } from './profile.ts'
import { SeededRandom } from './seeded-random.ts'
import { afterRun, makeStackLoad, poolName, type RunCause, type StackLoad } from './stack-load.ts'
import { type SimulatedWorker, WorkerFleet } from './worker-fleet.ts'

export type { SimulationResult, WaitSummary } from './measurements.ts'

export type FleetSpec = {
  readonly stacks: number
  /** Interval of the drift checks of a Stack, in milliseconds; undefined: no drift checks. */
  readonly intervalMs: number | undefined
  /** Default 1. The k-th tenant has 1/k of the Stacks of the first one. */
  readonly tenants?: number
  readonly profile: Profile
  /** Measured hours, from midnight. Default 24. */
  readonly hours?: number
  /** Simulated before that and not measured, in milliseconds. Default: 30 minutes, so that the pool has reached its size; 0 for `New`. */
  readonly warmUpMs?: number
  /** `Steady`: every Stack is at a random point of its interval. `New`: every Stack needs its first Run at time 0. Default: Steady. */
  readonly initialState?: 'Steady' | 'New'
  /** Default 1. */
  readonly seed?: number
}

export type PoolConfig = Pick<WorkerPoolSpec, 'lifecycle' | 'slots' | 'min' | 'idleTimeout'> & { readonly max: number }

const hourMs = 3_600_000
/** Interval of {@link RunQueue.tick}, as in `dispatch/`. */
const tickMs = 30_000
/** Virtual time 0 as a date; only differences matter. */
const epochMs = Date.parse('2026-06-01T00:00:00Z')

type SimulationEvent =
  | { readonly kind: 'Due'; readonly stack: StackLoad; readonly cause: RunCause }
  | { readonly kind: 'Ended'; readonly stack: StackLoad; readonly worker: SimulatedWorker }
  | { readonly kind: 'Registered'; readonly worker: string }
  | { readonly kind: 'Commit' }
  | { readonly kind: 'IdleCheck' }
  | { readonly kind: 'Tick' }

/**
 * Simulates a fleet on virtual time with one pool size. The same arguments give the same result.
 *
 * @throws {RangeError} if a number is out of range.
 */
export function simulateFleet(fleet: FleetSpec, pool: PoolConfig): SimulationResult {
  return new Simulation(fleet, pool).run()
}

class Simulation {
  readonly #fleet: FleetSpec
  readonly #workers: WorkerFleet
  readonly #scheduler = new Scheduler()
  readonly #queue: RunQueue = this.#scheduler.queue
  readonly #events = new EventQueue<SimulationEvent>()
  readonly #stacks: StackLoad[]
  readonly #settings
  readonly #measurements: Measurements
  readonly #endMs: number
  readonly #warmUpMs: number
  readonly #timeoutMs = parseDuration(defaults.timeout)
  // Separate generators, so that every pool size gets the same commits.
  readonly #commitRandom: SeededRandom
  readonly #runRandom: SeededRandom
  readonly #startRandom: SeededRandom
  readonly #placementRandom: SeededRandom
  readonly #serviceTimes
  readonly #startMs
  readonly #hourWeights: readonly number[]
  #idleCheckMs = Number.POSITIVE_INFINITY
  #nowMs = 0

  constructor(fleet: FleetSpec, pool: PoolConfig) {
    const { stacks, intervalMs, tenants = 1, profile, hours = 24, seed = 1, initialState = 'Steady' } = fleet
    assertValid('stacks', stacks, Number.isInteger(stacks) && stacks >= 1, 'an integer >= 1')
    assertValid(
      'tenants',
      tenants,
      Number.isInteger(tenants) && tenants >= 1 && tenants <= stacks,
      'an integer from 1 to the number of stacks',
    )
    assertValid('hours', hours, hours > 0, 'greater than 0')
    assertValid('intervalMs', intervalMs ?? 1, (intervalMs ?? 1) > 0, 'greater than 0')
    assertValid('max', pool.max, Number.isInteger(pool.max) && pool.max >= 1, 'an integer >= 1')
    this.#fleet = fleet
    this.#warmUpMs = fleet.warmUpMs ?? (initialState === 'New' ? 0 : hourMs / 2)
    this.#endMs = this.#warmUpMs + hours * hourMs
    this.#settings = { ...settingsOf({ engine: 'command', source: {} }), intervalMs }
    this.#workers = new WorkerFleet({ mode: 'Process', ...pool }, this.#scheduler.inventory, epochMs)
    this.#measurements = new Measurements(this.#warmUpMs, tenants)
    this.#serviceTimes = serviceTimesOf(profile)
    this.#startMs = durationSampler('profile.workerStart', profile.workerStart)
    const sum = profile.changesByHour.reduce((total, weight) => total + weight, 0)
    this.#hourWeights = profile.changesByHour.map(weight => (24 * weight) / sum)
    const random = new SeededRandom(seed)
    this.#commitRandom = random.fork()
    this.#runRandom = random.fork()
    this.#startRandom = random.fork()
    this.#placementRandom = random.fork()
    this.#stacks = tenantOfEach(stacks, tenants).map((tenant, index) => makeStackLoad(index, tenant, epochMs))
    this.#scheduleInitialEvents(initialState, random.fork())
  }

  run(): SimulationResult {
    this.#pass()
    while (this.#events.nextMs < this.#endMs) {
      this.#nowMs = this.#events.nextMs
      this.#measurements.advanceTo(this.#nowMs, this.#workers)
      // All events of the same time share one pass, as in dispatch.
      while (this.#events.nextMs === this.#nowMs) this.#handle(this.#events.pop()!)
      this.#pass()
    }
    this.#measurements.advanceTo(this.#endMs, this.#workers)
    for (const stack of this.#stacks) if (stack.phase === 'Queued') this.#measurements.runStillQueued(stack, this.#endMs)
    return this.#measurements.result(this.#workers, this.#endMs)
  }

  #scheduleInitialEvents(initialState: 'Steady' | 'New', random: SeededRandom): void {
    const { intervalMs, profile, stacks } = this.#fleet
    for (const stack of this.#stacks) {
      if (initialState === 'New') this.#scheduleDue(stack, 'Change', 0)
      else if (intervalMs !== undefined) this.#scheduleDue(stack, 'DriftCheck', random.next() * intervalMs)
    }
    if (profile.changesPerStackPerDay * stacks > 0) this.#events.add(this.#nextCommitMs(), { kind: 'Commit' })
    this.#events.add(tickMs, { kind: 'Tick' })
  }

  #handle(event: SimulationEvent): void {
    switch (event.kind) {
      case 'Due':
        // A due time is outdated if the Stack has changed since.
        if (event.stack.phase === 'Idle' && event.stack.dueMs === this.#nowMs) this.#enqueue(event.stack, event.cause)
        return
      case 'Ended':
        this.#endRun(event.stack, event.worker)
        return
      case 'Registered':
        this.#workers.register(event.worker, this.#nowMs)
        this.#checkIdle(this.#workers.idleTimeoutAtMs(this.#nowMs))
        return
      case 'Commit':
        this.#commit()
        return
      case 'IdleCheck':
        if (this.#idleCheckMs !== this.#nowMs) return
        this.#idleCheckMs = Number.POSITIVE_INFINITY
        this.#checkIdle(this.#workers.removeIdle(this.#startable(), this.#nowMs))
        return
      case 'Tick':
        this.#queue.tick(epochMs + this.#nowMs)
        this.#events.add(this.#nowMs + tickMs, { kind: 'Tick' })
    }
  }

  /** Assigns queued Runs; then sizes the pool for the rest. */
  #pass(): void {
    if (this.#queue.size > 0 && this.#workers.free.length > 0) this.#assign()
    const { provisioned, max } = this.#workers
    // Otherwise no worker is started: the pool is at its maximum, or it is at its minimum and the queue is empty.
    if (provisioned < max && (this.#queue.size > 0 || provisioned < (this.#workers.spec.min ?? 0))) this.#resize()
  }

  #assign(): void {
    const assignments = this.#scheduler.schedule({ nowMs: epochMs + this.#nowMs, random: this.#placementRandom.next })
    const started = new Set<SimulatedWorker>()
    for (const { key, worker } of assignments) {
      const stack = this.#stacks[Number(key.slice(key.lastIndexOf('-') + 1))]!
      stack.phase = 'Running'
      this.#measurements.runStarted(stack, this.#nowMs)
      const tookMs = Math.min(this.#timeoutMs, this.#serviceTimes[stack.cause](this.#runRandom.next))
      const assigned = this.#workers.assign(worker)
      started.add(assigned)
      this.#events.add(this.#nowMs + tookMs, { kind: 'Ended', stack, worker: assigned })
    }
    for (const worker of started) this.#workers.markBusy(worker)
  }

  #resize(): void {
    const { start } = this.#workers.size(this.#startable(), this.#nowMs)
    for (let i = 0; i < start; i++) {
      const worker = this.#workers.start(this.#nowMs)
      this.#events.add(this.#nowMs + this.#startMs(this.#startRandom.next()), { kind: 'Registered', worker })
    }
  }

  #startable(): number {
    const { max, slots } = this.#workers
    return this.#queue.size === 0 ? 0 : countStartable(this.#queue, poolName, this.#queue.equivalenceClasses(), max * slots)
  }

  /** Queues a Run of the Stack. It supersedes a queued Run and keeps that Run's age. */
  #enqueue(stack: StackLoad, cause: RunCause): void {
    const since = stack.phase === 'Queued' ? this.#queue.find(stack.key)?.request.sinceMs : undefined
    stack.phase = 'Queued'
    stack.cause = cause
    stack.arrivedMs = this.#nowMs
    stack.dueMs = Number.POSITIVE_INFINITY
    this.#queue.put({ ...stack.requests[cause], sinceMs: since ?? epochMs + this.#nowMs, order: this.#measurements.runArrived() })
  }

  #change(stack: StackLoad): void {
    if (stack.phase === 'Running') stack.hasChanged = true
    else if (stack.phase === 'Idle') {
      stack.failures = 0
      this.#enqueue(stack, 'Change')
    } else if (stack.cause === 'DriftCheck') this.#enqueue(stack, 'Change')
  }

  #commit(): void {
    const { profile } = this.#fleet
    const hour = Math.floor(Math.max(0, this.#nowMs - this.#warmUpMs) / hourMs) % 24
    const maxWeight = Math.max(...this.#hourWeights)
    // Thinning: commits arrive at the rate of the busiest hour, and the surplus over the rate of the current hour is dropped.
    if (this.#commitRandom.next() * maxWeight < this.#hourWeights[hour]!) {
      const count = this.#commitRandom.geometric(profile.stacksPerChange)
      const first = Math.floor(this.#commitRandom.next() * this.#stacks.length)
      const { tenant } = this.#stacks[first]!
      for (let i = first; i < first + count && this.#stacks[i]?.tenant === tenant; i++) this.#change(this.#stacks[i]!)
    }
    this.#events.add(this.#nextCommitMs(), { kind: 'Commit' })
  }

  #nextCommitMs(): number {
    const { stacks, profile } = this.#fleet
    const perDay = (stacks * profile.changesPerStackPerDay * Math.max(...this.#hourWeights)) / profile.stacksPerChange
    return this.#nowMs + this.#commitRandom.exponential((24 * hourMs) / perDay)
  }

  #endRun(stack: StackLoad, worker: SimulatedWorker): void {
    this.#queue.end(stack.key, epochMs + this.#nowMs)
    this.#workers.release(worker, this.#nowMs)
    if (worker.active === 0 && worker.freeIndex >= 0) this.#checkIdle(this.#workers.idleTimeoutAtMs(this.#nowMs))
    const isFailed = this.#runRandom.next() < this.#fleet.profile.failureShare
    this.#measurements.runEnded(isFailed, this.#nowMs)
    const next = afterRun(stack, isFailed, this.#settings, this.#nowMs)
    stack.phase = 'Idle'
    stack.hasChanged = false
    if (next?.atMs === this.#nowMs) this.#enqueue(stack, next.cause)
    else if (next) this.#scheduleDue(stack, next.cause, next.atMs)
  }

  #scheduleDue(stack: StackLoad, cause: RunCause, atMs: number): void {
    stack.dueMs = atMs
    this.#events.add(atMs, { kind: 'Due', stack, cause })
  }

  #checkIdle(atMs: number): void {
    if (atMs >= this.#idleCheckMs) return
    this.#idleCheckMs = atMs
    this.#events.add(atMs, { kind: 'IdleCheck' })
  }
}

/** The tenant of each Stack. The k-th tenant has 1/k of the Stacks of the first one, as tenants of real fleets differ in size. */
function tenantOfEach(stacks: number, tenants: number): number[] {
  const weights = Array.from({ length: tenants }, (_, index) => 1 / (index + 1))
  const sum = weights.reduce((total, weight) => total + weight, 0)
  const remaining = stacks - tenants
  let before = 0
  return weights.flatMap((weight, tenant) => {
    const from = Math.round((before / sum) * remaining)
    before += weight
    return Array.from({ length: 1 + Math.round((before / sum) * remaining) - from }, () => tenant)
  })
}

function assertValid(name: string, got: number, isValid: boolean, allowed: string): void {
  if (!isValid) throw new RangeError(`${name} must be ${allowed}, got ${got}`)
}
