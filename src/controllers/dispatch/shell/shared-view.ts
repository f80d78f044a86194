import type { Worker } from '../../../api/index.ts'
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

  constructor(options: SharedViewOptions) {
    this.#options = options
  }

  readonly isPreferred = (worker: Pick<Worker, 'metadata'>): boolean => isPreferredIn(this.#view, worker)

  /** @param partitions names of all tenant partitions. @throws {RangeError} if this one is none of them: the view stays as it is. */
  setPartitions(partitions: readonly string[]): void {
    const { own, viewsPerWorker, seesAll = false } = this.#options
    const view = seesAll && !partitions.includes(own) ? undefined : decideWorkerView(own, partitions, viewsPerWorker)
    const fingerprint = JSON.stringify(view ? [[...view.preferred], [...view.spare]] : [])
    if (fingerprint === this.#fingerprint) return
    this.#fingerprint = fingerprint
    this.#view = view
    this.selector.set(seesAll ? '' : selectorOfView(view))
    for (const listener of this.#listeners) listener()
  }

  /** Calls `listener` when the view has changed; returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
