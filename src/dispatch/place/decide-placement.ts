import type { Run, Worker } from '../../api/index.ts'
import { freeSlots, loadOf, type WorkerLoad, type WorkerLoads } from '../worker-load.ts'
import { compareQueued } from './queue-order.ts'

export type PlacementInput = {
  /** Runs in phase Queued without a Worker that are neither canceled nor being deleted. */
  readonly queued: readonly Run[]
  readonly workers: readonly Worker[]
  readonly load: WorkerLoads
}

export type Placement = {
  readonly assignments: readonly { readonly run: Run; readonly worker: string }[]
  /** By pool: Runs that got no Worker, in order. */
  readonly left: ReadonlyMap<string, readonly Run[]>
  /** The load with what was just placed. */
  readonly load: WorkerLoads
}

/** Decides which Worker gets which Run. Runs go by priority, then age; each free slot takes the next Run of its pool. */
export function decidePlacement({ queued, workers, load }: PlacementInput): Placement {
  const free = freeWorkers(workers, load)
  const assignments: { run: Run; worker: string }[] = []
  const left = new Map<string, Run[]>()
  const next = new Map<string, WorkerLoad>(load)
  for (const run of [...queued].sort(compareQueued)) {
    const { pool } = run.spec
    const worker = free.get(pool)?.take()
    if (worker !== undefined) {
      assignments.push({ run, worker })
      const { active, total } = next.get(worker) ?? { active: 0, total: 0 }
      next.set(worker, { active: active + 1, total: total + 1 })
    } else {
      const rest = left.get(pool)
      if (rest) rest.push(run)
      else left.set(pool, [run])
    }
  }
  return { assignments, left, load: next }
}

/** Free places by pool. Workers are filled one after the other, the most loaded first, so that idle ones can go. */
function freeWorkers(workers: readonly Worker[], load: WorkerLoads): Map<string, FreePlaces> {
  const byPool = new Map<string, { name: string; active: number; free: number }[]>()
  for (const worker of workers) {
    const free = freeSlots(worker, load)
    if (free === 0) continue
    const place = { name: worker.metadata.name, active: loadOf(worker, load).active, free }
    const places = byPool.get(worker.spec.pool)
    if (places) places.push(place)
    else byPool.set(worker.spec.pool, [place])
  }
  return new Map([...byPool].map(([pool, places]) => [pool, new FreePlaces(places)]))
}

class FreePlaces {
  readonly #places: { name: string; active: number; free: number }[]
  #at = 0

  constructor(places: { name: string; active: number; free: number }[]) {
    this.#places = places.sort((a, b) => b.active - a.active || (a.name < b.name ? -1 : 1))
  }

  take(): string | undefined {
    const place = this.#places[this.#at]
    if (!place) return undefined
    if (--place.free === 0) this.#at++
    return place.name
  }
}
