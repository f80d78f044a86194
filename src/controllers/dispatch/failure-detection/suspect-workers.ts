import type { Worker } from '../../../api/index.ts'

/** Upper bound of the extra delay until a silent worker is noticed. A check costs one step for each worker. */
const checkIntervalMs = 250

/**
 * Workers that may be lost: they get no new Runs until their state is known. A suspect that renews its Lease again is schedulable again;
 * only `decide-lost.ts` declares a worker lost.
 */
export class SuspectWorkers {
  readonly #isSuspect: (worker: string, monotonicMs: number) => boolean
  #names = new Set<string>()
  #checkedAtMs = -Infinity

  constructor(isSuspect: (worker: string, monotonicMs: number) => boolean) {
    this.#isSuspect = isSuspect
  }

  clear(): void {
    this.#names.clear()
  }

  /**
   * Checks all workers, at most once per interval unless `isForced` returns true.
   * @returns names of the workers that became suspects or stopped being suspects.
   */
  check(workers: Iterable<string>, monotonicMs: number, isForced: () => boolean): Iterable<string> {
    if (monotonicMs - this.#checkedAtMs < checkIntervalMs && !isForced()) return []
    this.#checkedAtMs = monotonicMs
    const before = this.#names
    this.#names = new Set()
    for (const name of workers) if (this.#isSuspect(name, monotonicMs)) this.#names.add(name)
    return before.symmetricDifference(this.#names)
  }

  /** Returns a suspect as if it were draining, so that it is not schedulable; any other Worker unchanged. */
  cordoned(worker: Worker): Worker {
    return this.#names.has(worker.metadata.name) ? { ...worker, spec: { ...worker.spec, drain: true } } : worker
  }
}
