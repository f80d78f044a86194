import type { Worker } from '../../../api/index.ts'
import { parseQuantity, quantityMillis, quantityValue } from '../../../kubernetes/object/index.ts'
import type { Needs } from '../queue/index.ts'
import { canTakeRuns, freeSlots, isSpent, noLoad, type WorkerLoad, type WorkerLoads, withRun } from '../worker-load.ts'
import { type Candidate, chooseWorker, domainOf, sample, sampleSize } from './choose-worker.ts'
import { type Engines, mismatch } from './match-worker.ts'

type InventoryWorker = Candidate & {
  worker: Worker
  load: WorkerLoad
  /** What is left of its capacity; Infinity where it does not say what it has. */
  cpuMillis: number
  memoryBytes: number
  domain: string
  canTake: boolean
  isBusy: boolean
  isIdle: boolean
  /** Its place in `free`; -1 when it is not there. */
  at: number
}

type Pool = {
  readonly members: Map<string, InventoryWorker>
  /** Those with a free slot, in no order. */
  readonly free: InventoryWorker[]
  /** Runs by failure domain. */
  readonly activeIn: Map<string, number>
  /** Those that its Workers say they have, with how many say so. */
  readonly engines: Map<string, number>
  busy: number
  idle: number
}

/** How many Workers a pool has and what they do. */
export type PoolWorkers = {
  readonly workers: number
  /** With a Run, or saying so. */
  readonly busy: number
  /** Those that would take a Run now. */
  readonly idle: number
}

const none: Engines = new Set<string>()
const nobody: PoolWorkers = { workers: 0, busy: 0, idle: 0 }

/**
 * The Workers by pool, with what they have to do: kept up to date one Worker at a time, so that a decision costs what it decides and
 * not what there is. What a decision gives away is counted at once; {@link setLoad} says how it is in the end.
 */
export class WorkerInventory {
  readonly #pools = new Map<string, Pool>()
  readonly #poolOf = new Map<string, string>()
  /** Not given away in this decision. */
  #withheld: InventoryWorker[] = []
  readonly #random: () => number

  /** @param random 0 ≤ x < 1; for sampling large pools. */
  constructor(random: () => number) {
    this.#random = random
  }

  /** Those of one decision. */
  static of(workers: Iterable<Worker>, load: WorkerLoads, random: () => number): WorkerInventory {
    const hands = new WorkerInventory(random)
    for (const worker of workers) hands.set(worker, load.get(worker.metadata.name))
    return hands
  }

  /** A Worker is new, or has changed. */
  set(worker: Worker, load: WorkerLoad = noLoad): void {
    const { name } = worker.metadata
    const before = this.#poolOf.get(name)
    if (before !== undefined) this.#leave(before, name)
    this.#poolOf.set(name, worker.spec.pool)
    this.#join(worker, load)
  }

  /** What a Worker has to do has changed. */
  setLoad(name: string, load: WorkerLoad = noLoad): void {
    const hand = this.#find(name)
    if (!hand || hand.load === load) return
    this.set(hand.worker, load)
  }

  delete(name: string): void {
    const pool = this.#poolOf.get(name)
    if (pool === undefined) return
    this.#leave(pool, name)
    this.#poolOf.delete(name)
  }

  clear(): void {
    this.#pools.clear()
    this.#poolOf.clear()
    this.#withheld = []
  }

  // ---- what there is

  pools(): Iterable<string> {
    return this.#pools.keys()
  }

  count(poolName: string): PoolWorkers {
    const pool = this.#pools.get(poolName)
    return pool ? { workers: pool.members.size, busy: pool.busy, idle: pool.idle } : nobody
  }

  /** The Workers of a pool that would take a Run now. */
  idle(poolName: string): Worker[] {
    return [...this.#members(poolName)].filter(({ isIdle }) => isIdle).map(({ worker }) => worker)
  }

  /** The engines that Workers of the pool say they have. */
  engines(poolName: string): Engines {
    return this.#pools.get(poolName)?.engines ?? none
  }

  /** Whether a Worker of the pool satisfies `test`. */
  some(poolName: string, test: (worker: Worker) => boolean): boolean {
    for (const { worker } of this.#members(poolName)) if (test(worker)) return true
    return false
  }

  // ---- giving away

  /** A decision begins. */
  begin(): void {
    for (const hand of this.#withheld) {
      // As it is now: it may have gone, or have become another one.
      const { name } = hand.worker.metadata
      if (this.#find(name) === hand) this.set(hand.worker, hand.load)
    }
    this.#withheld = []
  }

  /** Gives a slot of the best Worker for these needs away. */
  take(needs: Needs, cacheKey: string | undefined): string | undefined {
    const pool = this.#pools.get(needs.pool)
    if (!pool || pool.free.length === 0) return undefined
    const fits = (hand: InventoryWorker) => fitsNow(needs, hand, pool.engines)
    let candidates = sample(pool.free, this.#random).filter(fits)
    // None of a few says nothing about the others.
    if (candidates.length === 0 && pool.free.length > sampleSize) candidates = pool.free.filter(fits)
    const chosen = chooseWorker(candidates, cacheKey, domain => pool.activeIn.get(domain) ?? 0)
    return chosen && this.#give(pool, chosen, needs)
  }

  /** Whether a free Worker would do now. */
  has(needs: Needs): boolean {
    const pool = this.#pools.get(needs.pool)
    return pool?.free.some(hand => fitsNow(needs, hand, pool.engines)) ?? false
  }

  /** The Worker that would do once its Runs have ended: the one with the fewest. */
  promising(needs: Needs): string | undefined {
    const engines = this.engines(needs.pool)
    let best: InventoryWorker | undefined
    for (const hand of this.#members(needs.pool)) {
      if (!hand.canTake || !isLasting(hand.worker) || mismatch(needs, hand.worker, engines) !== undefined) continue
      if (!best || hand.active < best.active || (hand.active === best.active && nameOf(hand) < nameOf(best))) best = hand
    }
    return best && nameOf(best)
  }

  /** Gives a slot of just this Worker away, if it would do now. */
  takeFrom(name: string, needs: Needs): string | undefined {
    const pool = this.#pools.get(needs.pool)
    const hand = pool?.members.get(name)
    return pool && hand && hand.at >= 0 && fitsNow(needs, hand, pool.engines) ? this.#give(pool, hand, needs) : undefined
  }

  /** Nobody gets this Worker in this decision. False when there is no such Worker any more. */
  withhold(poolName: string, name: string): boolean {
    const pool = this.#pools.get(poolName)
    const hand = pool?.members.get(name)
    if (!pool || !hand?.canTake) return false
    leaveFree(pool, hand)
    this.#withheld.push(hand)
    return true
  }

  #give(pool: Pool, hand: InventoryWorker, needs: Needs): string {
    const { worker, load } = hand
    const name = nameOf(hand)
    pool.members.delete(name)
    forget(pool, hand)
    this.#join(worker, withRun(load, 1, needs))
    return name
  }

  // ---- keeping up to date

  #join(worker: Worker, load: WorkerLoad): void {
    const pool = this.#poolFor(worker.spec.pool)
    const { active, cpuMillis = 0, memoryBytes = 0 } = load
    const { cpu, memory } = worker.status?.capacity ?? {}
    const canTake = canTakeRuns(worker)
    const isBusy = active > 0 || worker.status?.phase === 'Busy'
    const hand: InventoryWorker = {
      worker,
      load,
      active,
      free: freeSlots(worker, load),
      cpuMillis: cpu === undefined ? Infinity : quantityMillis(parseQuantity(cpu)) - cpuMillis,
      memoryBytes: memory === undefined ? Infinity : quantityValue(parseQuantity(memory)) - memoryBytes,
      domain: domainOf(worker),
      canTake,
      isBusy,
      isIdle: !isBusy && canTake && !isSpent(worker, load),
      at: -1,
    }
    pool.members.set(worker.metadata.name, hand)
    pool.busy += Number(hand.isBusy)
    pool.idle += Number(hand.isIdle)
    pool.activeIn.set(hand.domain, (pool.activeIn.get(hand.domain) ?? 0) + active)
    for (const engine of Object.keys(worker.status?.engines ?? {})) pool.engines.set(engine, (pool.engines.get(engine) ?? 0) + 1)
    if (hand.free > 0) hand.at = pool.free.push(hand) - 1
  }

  #leave(poolName: string, name: string): void {
    const pool = this.#pools.get(poolName)
    const hand = pool?.members.get(name)
    if (!pool || !hand) return
    pool.members.delete(name)
    forget(pool, hand)
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
      pool = { members: new Map(), free: [], activeIn: new Map(), engines: new Map(), busy: 0, idle: 0 }
      this.#pools.set(name, pool)
    }
    return pool
  }
}

function forget(pool: Pool, hand: InventoryWorker): void {
  leaveFree(pool, hand)
  pool.busy -= Number(hand.isBusy)
  pool.idle -= Number(hand.isIdle)
  take(pool.activeIn, hand.domain, hand.active)
  for (const engine of Object.keys(hand.worker.status?.engines ?? {})) take(pool.engines, engine, 1)
}

/** The last one gets its place. */
function leaveFree({ free }: Pool, hand: InventoryWorker): void {
  if (hand.at < 0) return
  const last = free.pop()!
  if (last !== hand) {
    free[hand.at] = last
    last.at = hand.at
  }
  hand.at = -1
}

function take(counts: Map<string, number>, key: string, count: number): void {
  const left = (counts.get(key) ?? 0) - count
  if (left > 0) counts.set(key, left)
  else counts.delete(key)
}

function fitsNow(needs: Needs, { worker, cpuMillis, memoryBytes }: InventoryWorker, engines: Engines): boolean {
  return needs.cpuMillis <= cpuMillis && needs.memoryBytes <= memoryBytes && mismatch(needs, worker, engines) === undefined
}

const nameOf = ({ worker }: InventoryWorker): string => worker.metadata.name

/** A one-shot worker that is busy has nothing to give when its Run has ended. */
const isLasting = ({ spec }: Worker) => spec.lifecycle !== 'OneShot' || spec.slots > 1
