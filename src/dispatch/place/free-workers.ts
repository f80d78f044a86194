import type { Worker } from '../../api/index.ts'
import { parseQuantity, quantityMillis, quantityValue } from '../../kube/index.ts'
import type { Needs } from '../queue/index.ts'
import { canTakeRuns, freeSlots, loadOf, type WorkerLoads } from '../worker-load.ts'
import { type Candidate, chooseWorker, domainOf, sample, sampleSize } from './choose-worker.ts'
import { mismatch } from './match-worker.ts'

type Hand = Candidate & {
  /** What is left of its capacity; Infinity where it does not say what it has. */
  cpuMillis: number
  memoryBytes: number
}

type PoolWorkers = {
  /** Every Worker of the pool that takes Runs at all, free or not. */
  readonly members: Hand[]
  /** Those with a free slot. */
  readonly free: Hand[]
  /** Runs by failure domain. */
  readonly activeIn: Map<string, number>
  /** Those that its Workers say they have. */
  readonly engines: Set<string>
}

/** The Workers of one decision, with what is given to them while it is made. */
export class FreeWorkers {
  readonly #pools = new Map<string, PoolWorkers>()
  readonly #random: () => number

  constructor(workers: readonly Worker[], load: WorkerLoads, random: () => number) {
    this.#random = random
    for (const worker of workers) {
      const pool = this.#pool(worker.spec.pool)
      const { active, cpuMillis = 0, memoryBytes = 0 } = loadOf(worker, load)
      const domain = domainOf(worker)
      pool.activeIn.set(domain, (pool.activeIn.get(domain) ?? 0) + active)
      for (const engine of Object.keys(worker.status?.engines ?? {})) pool.engines.add(engine)
      if (!canTakeRuns(worker)) continue
      const { cpu, memory } = worker.status?.capacity ?? {}
      const hand: Hand = {
        worker,
        active,
        free: freeSlots(worker, load),
        cpuMillis: cpu === undefined ? Infinity : quantityMillis(parseQuantity(cpu)) - cpuMillis,
        memoryBytes: memory === undefined ? Infinity : quantityValue(parseQuantity(memory)) - memoryBytes,
      }
      pool.members.push(hand)
      if (hand.free > 0) pool.free.push(hand)
    }
  }

  /** Gives a slot of the best Worker for these needs away. */
  take(needs: Needs, cacheKey: string | undefined): string | undefined {
    const pool = this.#pools.get(needs.pool)
    if (!pool || pool.free.length === 0) return undefined
    const fits = (hand: Hand) => fitsNow(needs, hand, pool.engines)
    let candidates = sample(pool.free, this.#random).filter(fits)
    // None of a few says nothing about the others.
    if (candidates.length === 0 && pool.free.length > sampleSize) candidates = pool.free.filter(fits)
    const chosen = chooseWorker(candidates, cacheKey, domain => pool.activeIn.get(domain) ?? 0)
    if (!chosen) return undefined
    return this.#give(pool, chosen, needs)
  }

  /** Whether a free Worker would do now. */
  has(needs: Needs): boolean {
    const pool = this.#pools.get(needs.pool)
    return pool?.free.some(hand => fitsNow(needs, hand, pool.engines)) ?? false
  }

  /** The Worker that would do once its Runs have ended: the one with the fewest. */
  promising(needs: Needs): string | undefined {
    const pool = this.#pools.get(needs.pool)
    if (!pool) return undefined
    const hands = pool.members.filter(({ worker }) => isLasting(worker) && mismatch(needs, worker, pool.engines) === undefined)
    return hands.sort((a, b) => a.active - b.active || (a.worker.metadata.name < b.worker.metadata.name ? -1 : 1))[0]?.worker.metadata.name
  }

  /** Gives a slot of just this Worker away, if it would do now. */
  takeFrom(name: string, needs: Needs): string | undefined {
    const pool = this.#pools.get(needs.pool)
    const hand = pool?.free.find(({ worker }) => worker.metadata.name === name)
    return pool && hand && fitsNow(needs, hand, pool.engines) ? this.#give(pool, hand, needs) : undefined
  }

  /** Nobody gets this Worker in this decision. False when there is no such Worker any more. */
  withhold(poolName: string, name: string): boolean {
    const pool = this.#pools.get(poolName)
    if (!pool?.members.some(({ worker }) => worker.metadata.name === name)) return false
    const at = pool.free.findIndex(({ worker }) => worker.metadata.name === name)
    if (at >= 0) pool.free.splice(at, 1)
    return true
  }

  #give(pool: PoolWorkers, hand: Hand, needs: Needs): string {
    hand.active++
    hand.free--
    hand.cpuMillis -= needs.cpuMillis
    hand.memoryBytes -= needs.memoryBytes
    const domain = domainOf(hand.worker)
    pool.activeIn.set(domain, (pool.activeIn.get(domain) ?? 0) + 1)
    if (hand.free === 0) pool.free.splice(pool.free.indexOf(hand), 1)
    return hand.worker.metadata.name
  }

  #pool(name: string): PoolWorkers {
    let pool = this.#pools.get(name)
    if (!pool) {
      pool = { members: [], free: [], activeIn: new Map(), engines: new Set() }
      this.#pools.set(name, pool)
    }
    return pool
  }
}

function fitsNow(needs: Needs, { worker, cpuMillis, memoryBytes }: Hand, engines: ReadonlySet<string>): boolean {
  return needs.cpuMillis <= cpuMillis && needs.memoryBytes <= memoryBytes && mismatch(needs, worker, engines) === undefined
}

/** A one-shot worker that is busy has nothing to give when its Run has ended. */
const isLasting = ({ spec }: Worker) => spec.lifecycle !== 'OneShot' || spec.slots > 1
