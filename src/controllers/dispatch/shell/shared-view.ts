import { type Worker, workerBucketOf } from '../../../api/index.ts'
import { ChangingSelector } from '../../../kubernetes/controller/index.ts'
import { decideWorkerView, isPreferredIn, selectorOfView, type WorkerView } from '../placement/index.ts'

export type SharedViewOptions = {
  /** Name of the partition. */
  readonly own: string
  /** How many tenant partitions see each worker. Default: 2. */
  readonly viewsPerWorker?: number | undefined
  /** It sizes the pools, and therefore sees all workers; it need not be a tenant partition. Default: false. */
  readonly seesAll?: boolean | undefined
}

/** The part of the shared workers that the dispatcher of one partition sees, as the set of tenant partitions changes. */
export class SharedView {
  /** Selects the Workers and their Leases. Not set before the partitions are known. */
  readonly selector = new ChangingSelector()
  readonly #options: SharedViewOptions
  readonly #listeners = new Set<() => void>()
  #view: WorkerView | undefined
  #fingerprint: string | undefined
  #partitions: readonly string[] = []
  /** Of other partitions. */
  readonly #others = new Map<string, WorkerView | undefined>()

  constructor(options: SharedViewOptions) {
    this.#options = options
  }

  readonly isPreferred = (worker: Pick<Worker, 'metadata'>): boolean => isPreferredIn(this.#view, worker)

  /** Whether the dispatcher of another partition sees the worker of this name. One that is no tenant partition, or not known yet, counts as one that does. */
  sees(partition: string, worker: string): boolean {
    if (!this.#partitions.includes(partition)) return true
    if (!this.#others.has(partition))
      this.#others.set(partition, decideWorkerView(partition, this.#partitions, this.#options.viewsPerWorker))
    const view = this.#others.get(partition)
    const bucket = workerBucketOf(worker)
    return !view || view.preferred.has(bucket) || view.spare.has(bucket)
  }

  /** @param partitions names of all tenant partitions. @throws {RangeError} if this one is none of them: the view stays as it is. */
  setPartitions(partitions: readonly string[]): void {
    const { own, viewsPerWorker, seesAll = false } = this.#options
    const view = seesAll && !partitions.includes(own) ? undefined : decideWorkerView(own, partitions, viewsPerWorker)
    this.#partitions = partitions
    this.#others.clear()
    // The workers that are seen; and what other partitions see, from which the pools are sized.
    const fingerprint = JSON.stringify([view && [...view.preferred], view && [...view.spare], seesAll && partitions.toSorted()])
    if (fingerprint === this.#fingerprint) return
    this.#fingerprint = fingerprint
    this.#view = view
    this.selector.set(seesAll ? '' : selectorOfView(view))
    for (const listener of this.#listeners) listener()
  }

  /** Calls `listener` when the view has changed, or with `seesAll` that of another partition; returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
