import type { Worker } from '../../api/index.ts'
import type { Needs } from '../queue/index.ts'
import { canTakeRuns, freeSlots, loadOf, type WorkerLoads } from '../worker-load.ts'
import { type Candidate, chooseWorker, domainOf, sample, sampleSize } from './choose-worker.ts'
import { mismatch } from './match-worker.ts'

type PoolWorkers = {
  /** Every Worker of the pool that takes Runs at all, free or not. */
  readonly members: Candidate[]
  /** Those with a free slot. */
  readonly free: Candidate[]
  /** Runs by failure domain. */
  readonly activeIn: Map<string, number>
}

/** The Workers of one decision, with what is given to them while it is made. */
export class FreeWorkers {
  readonly #pools = new Map<string, PoolWorkers>()
  readonly #random: () => number

  constructor(workers: readonly Worker[], load: WorkerLoads, random: () => number) {
    this.#random = random
    for (const worker of workers) {
      const pool = this.#pool(worker.spec.pool)
      const { active } = loadOf(worker, load)
      const domain = domainOf(worker)
      pool.activeIn.set(domain, (pool.activeIn.get(domain) ?? 0) + active)
      if (!canTakeRuns(worker)) continue
      const candidate = { worker, active, free: freeSlots(worker, load) }
      pool.members.push(candidate)
      if (candidate.free > 0) pool.free.push(candidate)
    }
  }

  /** Workers of the pool that take Runs, busy or not. */
  membersOf(pool: string): readonly Candidate[] {
    return this.#pools.get(pool)?.members ?? []
  }

  /** Gives a slot of the best Worker for these needs away. */
  take(needs: Needs, cacheKey: string | undefined): Worker | undefined {
    const pool = this.#pools.get(needs.pool)
    if (!pool || pool.free.length === 0) return undefined
    const fits = ({ worker }: Candidate) => mismatch(needs, worker) === undefined
    let candidates = sample(pool.free, this.#random).filter(fits)
    // None of a few says nothing about the others.
    if (candidates.length === 0 && pool.free.length > sampleSize) candidates = pool.free.filter(fits)
    const chosen = chooseWorker(candidates, cacheKey, domain => pool.activeIn.get(domain) ?? 0)
    if (!chosen) return undefined
    chosen.active++
    chosen.free--
    const domain = domainOf(chosen.worker)
    pool.activeIn.set(domain, (pool.activeIn.get(domain) ?? 0) + 1)
    if (chosen.free === 0) pool.free.splice(pool.free.indexOf(chosen), 1)
    return chosen.worker
  }

  /** Whether a free Worker would do. */
  has(needs: Needs): boolean {
    return this.#pools.get(needs.pool)?.free.some(({ worker }) => mismatch(needs, worker) === undefined) ?? false
  }

  #pool(name: string): PoolWorkers {
    let pool = this.#pools.get(name)
    if (!pool) {
      pool = { members: [], free: [], activeIn: new Map() }
      this.#pools.set(name, pool)
    }
    return pool
  }
}
