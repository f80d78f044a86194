import type { Worker } from '../../../api/index.ts'
import { parseQuantity, quantityMillis, quantityValue } from '../../../kubernetes/object/index.ts'
import type { Requirements } from '../queue/index.ts'
import { freeSlots, isExhausted, isSchedulable, noLoad, type WorkerLoad, type WorkerLoads, withRun } from '../worker-load.ts'
import { type Candidate, chooseWorker, domainOf, sample, sampleSize } from './choose-worker.ts'
import { type Engines, unmetRequirement } from './match-worker.ts'
import { isInTrustDomain, trustDomainToRecord } from './trust-domain.ts'

type InventoryWorker = Candidate & {
  worker: Worker
  load: WorkerLoad
  /** Free capacity; Infinity if the Worker reports none. */
  cpuMillis: number
  memoryBytes: number
  domain: string
  isSchedulable: boolean
  /** It gets no Run now, and counts as one that could. */
  isHeld: boolean
  isBusy: boolean
  isIdle: boolean
  /** The list of its pool that it is in while it has a free slot. */
  list: 'free' | 'spare'
  /** Index in that list; -1 if it is not in there. */
  freeIndex: number
}

type Pool = {
  readonly members: Map<string, InventoryWorker>
  /** Workers with a free slot, in no order. */
  readonly free: InventoryWorker[]
  /** The same, of those that other dispatchers prefer: used when no other fits. */
  readonly spare: InventoryWorker[]
  /** Active Runs by failure domain. */
  readonly activeByDomain: Map<string, number>
  /** Engines that its Workers report, with the number of Workers that report each. */
  readonly engines: Map<string, number>
  busy: number
  idle: number
}

/** Number of Workers of a pool by state. */
export type PoolWorkerCounts = {
  readonly workers: number
  /** With an active Run, or in phase Busy. */
  readonly busy: number
  /** Idle Workers that would accept a Run now. */
  readonly idle: number
}

const noEngines: Engines = new Set<string>()
const noWorkers: PoolWorkerCounts = { workers: 0, busy: 0, idle: 0 }

/**
 * The Workers of each pool with their load. It is updated one Worker at a time, so that the cost of a decision depends on the number of its
 * assignments and not on the size of the fleet. An assignment is counted immediately, before it is written; {@link setLoad} corrects the load if
 * the write fails.
 */
export class WorkerInventory {
  readonly #pools = new Map<string, Pool>()
  readonly #poolOf = new Map<string, string>()
  readonly #isPreferred: (worker: Worker) => boolean
  /** Workers reserved in this scheduling cycle. */
  #reserved: InventoryWorker[] = []

  /** @param isPreferred false for a worker that is used only when no other fits. Default: none is. */
  constructor(isPreferred: (worker: Worker) => boolean = () => true) {
    this.#isPreferred = isPreferred
  }

  /** An inventory of exactly these Workers. */
  static of(workers: Iterable<Worker>, load: WorkerLoads): WorkerInventory {
    const inventory = new WorkerInventory()
    for (const worker of workers) inventory.set(worker, load.get(worker.metadata.name))
    return inventory
  }

  /** Adds or replaces a Worker. @param isHeld it gets no Run before it is set again without this. */
  set(worker: Worker, load: WorkerLoad = noLoad, isHeld = false): void {
    const { name } = worker.metadata
    const before = this.#poolOf.get(name)
    if (before !== undefined) this.#remove(before, name)
    this.#poolOf.set(name, worker.spec.pool)
    this.#add(worker, load, isHeld)
  }

  /** Replaces the load of a Worker; unknown names are ignored. */
  setLoad(name: string, load: WorkerLoad = noLoad): void {
    const candidate = this.#find(name)
    if (!candidate || candidate.load === load) return
    this.set(candidate.worker, load, candidate.isHeld)
  }

  delete(name: string): void {
    const pool = this.#poolOf.get(name)
    if (pool === undefined) return
    this.#remove(pool, name)
    this.#poolOf.delete(name)
  }

  // ---- queries

  /** All Workers with the number of their active Runs, including those just assigned. */
  *workers(): Generator<{ readonly worker: Worker; readonly active: number; readonly isSchedulable: boolean }> {
    for (const { members } of this.#pools.values()) yield* members.values()
  }

  pools(): Iterable<string> {
    return this.#pools.keys()
  }

  count(poolName: string): PoolWorkerCounts {
    const pool = this.#pools.get(poolName)
    return pool ? { workers: pool.members.size, busy: pool.busy, idle: pool.idle } : noWorkers
  }

  *workersOf(poolName: string): Generator<Worker> {
    for (const { worker } of this.#members(poolName)) yield worker
  }

  /** The idle Workers of a pool that would accept a Run now. */
  idle(poolName: string): Worker[] {
    return [...this.#members(poolName)].filter(({ isIdle }) => isIdle).map(({ worker }) => worker)
  }

  /** The engines that Workers of the pool report. */
  engines(poolName: string): Engines {
    return this.#pools.get(poolName)?.engines ?? noEngines
  }

  /** Reports whether at least one Worker of the pool satisfies `test`. */
  some(poolName: string, test: (worker: Worker) => boolean): boolean {
    for (const { worker } of this.#members(poolName)) if (test(worker)) return true
    return false
  }

  // ---- assignments and reservations

  /** Begins a scheduling cycle: the reservations of the previous one are released. */
  beginCycle(): void {
    for (const candidate of this.#reserved) {
      // Only if it is still the same: it may have been deleted or replaced meanwhile.
      const { name } = candidate.worker.metadata
      if (this.#find(name) === candidate) this.set(candidate.worker, candidate.load, candidate.isHeld)
    }
    this.#reserved = []
  }

  /**
   * Assigns a slot of the best Worker that fits. Returns its name; undefined if none fits.
   * @param random 0 ≤ x < 1; for sampling large pools.
   * @param isWithoutRecord excludes Workers in which the trust domain of their first Run has to be recorded before.
   */
  assign(requirements: Requirements, cacheKeys: readonly string[], random: () => number, isWithoutRecord = false): string | undefined {
    const pool = this.#pools.get(requirements.pool)
    if (!pool) return undefined
    const doesFit = (candidate: InventoryWorker) =>
      fits(requirements, candidate, pool.engines) && !(isWithoutRecord && trustDomainToRecord(requirements, candidate.worker) !== undefined)
    for (const free of [pool.free, pool.spare]) {
      if (free.length === 0) continue
      let candidates = sample(free, random).filter(doesFit)
      // If no Worker of the sample fits, another one still may.
      if (candidates.length === 0 && free.length > sampleSize) candidates = free.filter(doesFit)
      const chosen = chooseWorker(candidates, cacheKeys, domain => pool.activeByDomain.get(domain) ?? 0)
      if (chosen) return this.#assume(pool, chosen, requirements)
    }
    return undefined
  }

  /** Reports whether a Worker with a free slot fits now. */
  hasFit(requirements: Requirements): boolean {
    const pool = this.#pools.get(requirements.pool)
    if (!pool) return false
    return [pool.free, pool.spare].some(free => free.some(candidate => fits(requirements, candidate, pool.engines)))
  }

  /** Nominates the Worker with the fewest Runs of those that would fit once their Runs have ended. */
  nominate(requirements: Requirements): string | undefined {
    const engines = this.engines(requirements.pool)
    let best: InventoryWorker | undefined
    for (const candidate of this.#members(requirements.pool)) {
      if (
        !candidate.isSchedulable ||
        !isReusable(candidate.worker) ||
        !isInTrustDomain(requirements, candidate.worker) ||
        unmetRequirement(requirements, candidate.worker, engines) !== undefined
      )
        continue
      if (!best || candidate.active < best.active || (candidate.active === best.active && nameOf(candidate) < nameOf(best)))
        best = candidate
    }
    return best && nameOf(best)
  }

  /** Assigns a slot of this Worker if it fits now. */
  assignTo(name: string, requirements: Requirements): string | undefined {
    const pool = this.#pools.get(requirements.pool)
    const candidate = pool?.members.get(name)
    return pool && candidate && candidate.freeIndex >= 0 && fits(requirements, candidate, pool.engines)
      ? this.#assume(pool, candidate, requirements)
      : undefined
  }

  /** Excludes the Worker from assignments in this cycle. Returns false if it no longer exists or is not schedulable. */
  reserve(poolName: string, name: string): boolean {
    const pool = this.#pools.get(poolName)
    const candidate = pool?.members.get(name)
    if (!pool || !candidate?.isSchedulable) return false
    removeFromFree(pool, candidate)
    this.#reserved.push(candidate)
    return true
  }

  #assume(pool: Pool, candidate: InventoryWorker, requirements: Requirements): string {
    const { worker, load } = candidate
    const name = nameOf(candidate)
    pool.members.delete(name)
    subtractCounts(pool, candidate)
    // It counts before it is recorded; if the worker is observed meanwhile, the server refuses another.
    const trustDomain = trustDomainToRecord(requirements, worker)
    const assumed = trustDomain === undefined ? worker : { ...worker, spec: { ...worker.spec, trustDomain } }
    this.#add(assumed, withRun(load, 1, requirements), candidate.isHeld)
    return name
  }

  // ---- bookkeeping

  #add(worker: Worker, load: WorkerLoad, isHeld: boolean): void {
    const pool = this.#poolFor(worker.spec.pool)
    const { active, cpuMillis = 0, memoryBytes = 0 } = load
    const { cpu, memory } = worker.status?.capacity ?? {}
    const canTake = isSchedulable(worker)
    const isBusy = active > 0 || worker.status?.phase === 'Busy'
    const candidate: InventoryWorker = {
      worker,
      load,
      active,
      free: freeSlots(worker, load),
      cpuMillis: cpu === undefined ? Infinity : quantityMillis(parseQuantity(cpu)) - cpuMillis,
      memoryBytes: memory === undefined ? Infinity : quantityValue(parseQuantity(memory)) - memoryBytes,
      domain: domainOf(worker),
      isSchedulable: canTake,
      isHeld,
      isBusy,
      isIdle: !isBusy && canTake && !isExhausted(worker, load),
      list: this.#isPreferred(worker) ? 'free' : 'spare',
      freeIndex: -1,
    }
    pool.members.set(worker.metadata.name, candidate)
    pool.busy += Number(candidate.isBusy)
    pool.idle += Number(candidate.isIdle)
    pool.activeByDomain.set(candidate.domain, (pool.activeByDomain.get(candidate.domain) ?? 0) + active)
    for (const engine of Object.keys(worker.status?.engines ?? {})) pool.engines.set(engine, (pool.engines.get(engine) ?? 0) + 1)
    if (candidate.free > 0 && !isHeld) candidate.freeIndex = pool[candidate.list].push(candidate) - 1
  }

  #remove(poolName: string, name: string): void {
    const pool = this.#pools.get(poolName)
    const candidate = pool?.members.get(name)
    if (!pool || !candidate) return
    pool.members.delete(name)
    subtractCounts(pool, candidate)
    if (pool.members.size === 0) this.#pools.delete(poolName)
  }

  #find(name: string): InventoryWorker | undefined {
    const pool = this.#poolOf.get(name)
    return pool === undefined ? undefined : this.#pools.get(pool)?.members.get(name)
  }

  #members(pool: string): Iterable<InventoryWorker> {
    return this.#pools.get(pool)?.members.values() ?? []
  }

  #poolFor(name: string): Pool {
    let pool = this.#pools.get(name)
    if (!pool) {
      pool = { members: new Map(), free: [], spare: [], activeByDomain: new Map(), engines: new Map(), busy: 0, idle: 0 }
      this.#pools.set(name, pool)
    }
    return pool
  }
}

function subtractCounts(pool: Pool, candidate: InventoryWorker): void {
  removeFromFree(pool, candidate)
  pool.busy -= Number(candidate.isBusy)
  pool.idle -= Number(candidate.isIdle)
  subtract(pool.activeByDomain, candidate.domain, candidate.active)
  for (const engine of Object.keys(candidate.worker.status?.engines ?? {})) subtract(pool.engines, engine, 1)
}

/** Removes in O(1): the last element takes its index. */
function removeFromFree(pool: Pool, candidate: InventoryWorker): void {
  if (candidate.freeIndex < 0) return
  const free = pool[candidate.list]
  const last = free.pop()!
  if (last !== candidate) {
    free[candidate.freeIndex] = last
    last.freeIndex = candidate.freeIndex
  }
  candidate.freeIndex = -1
}

function subtract(counts: Map<string, number>, key: string, count: number): void {
  const remaining = (counts.get(key) ?? 0) - count
  if (remaining > 0) counts.set(key, remaining)
  else counts.delete(key)
}

function fits(requirements: Requirements, { worker, cpuMillis, memoryBytes }: InventoryWorker, engines: Engines): boolean {
  return (
    requirements.cpuMillis <= cpuMillis &&
    requirements.memoryBytes <= memoryBytes &&
    isInTrustDomain(requirements, worker) &&
    unmetRequirement(requirements, worker, engines) === undefined
  )
}

const nameOf = ({ worker }: InventoryWorker): string => worker.metadata.name

/** A one-shot worker exits after its Run, so a busy one with a single slot never gets free. */
const isReusable = ({ spec }: Worker) => spec.lifecycle !== 'OneShot' || spec.slots > 1
