import type { Run } from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'

/**
 * The Runs that are assigned to a worker and not started yet, in the order of their arrival.
 * A Run keeps its worker, so each is started at most once, whatever a watch delivers again.
 */
export class RunAssignments {
  readonly #workerName: string
  readonly #assigned = new Map<string, Run>()
  readonly #startedUids = new Set<string>()

  constructor(workerName: string) {
    this.#workerName = workerName
  }

  get assignedCount(): number {
    return this.#assigned.size
  }

  /** Runs started since the worker started. */
  get startedCount(): number {
    return this.#startedUids.size
  }

  /** Takes a version of a Run that is not executed. Returns whether it can be started. */
  observe(run: Run): boolean {
    const isStartable = this.#isStartable(run)
    if (isStartable) this.#assigned.set(objectKey(run), run)
    else this.#assigned.delete(objectKey(run))
    return isStartable
  }

  /** The Run was deleted, or is no longer assigned to this worker. */
  remove(run: Run): void {
    this.#assigned.delete(objectKey(run))
  }

  /** Keeps only Runs of a complete list. */
  retain(uids: ReadonlySet<string>): void {
    for (const [key, run] of this.#assigned) if (!uids.has(run.metadata.uid)) this.#assigned.delete(key)
  }

  /** Removes the first assigned Run and counts it as started. */
  startNext(): Run | undefined {
    const [run] = this.#assigned.values()
    if (!run) return undefined
    this.#assigned.delete(objectKey(run))
    this.#startedUids.add(run.metadata.uid)
    return run
  }

  #isStartable({ metadata, spec, status }: Run): boolean {
    const phase = status?.phase ?? 'Queued'
    const isOwn = spec.workerName === this.#workerName && !this.#startedUids.has(metadata.uid)
    return isOwn && !metadata.deletionTimestamp && (phase === 'Queued' || phase === 'Assigned')
  }
}
