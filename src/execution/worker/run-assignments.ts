import { isEnded, type Run } from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'

export type RunAssignmentsOptions = {
  readonly workerName: string
  readonly lifecycle: 'OneShot' | 'Warm'
  /** Runs at the same time; of a one-shot worker: in all. */
  readonly slots: number
}

/** `accepted`: it is started as soon as its slot is free. `rejected`: it is never started; its end has to be reported. `none`: nothing is to be done. */
export type Admission = 'accepted' | 'rejected' | 'none'

/**
 * The Runs that are assigned to a worker and not started yet, in the order of their arrival.
 * A Run keeps its worker, so each is started at most once, whatever a watch delivers again.
 *
 * Several dispatchers may use one slot at the same time: the worker accepts the Run that arrives first. A slot is free from the moment at which the end of
 * its Run was observed, although the worker still cleans up: the dispatcher that assigns the next Run has observed no more than that.
 */
export class RunAssignments {
  readonly #options: RunAssignmentsOptions
  readonly #assigned = new Map<string, Run>()
  readonly #startedUids = new Set<string>()
  /** Started Runs whose end was not observed. */
  readonly #openUids = new Set<string>()
  /** Rejected Runs whose end was not observed. */
  readonly #rejectedUids = new Set<string>()

  constructor(options: RunAssignmentsOptions) {
    this.#options = options
  }

  get assignedCount(): number {
    return this.#assigned.size
  }

  /** Runs started since the worker started. */
  get startedCount(): number {
    return this.#startedUids.size
  }

  /** Takes a version of a Run. */
  observe(run: Run): Admission {
    const { uid } = run.metadata
    if (isEnded(run)) this.ended(uid)
    const key = objectKey(run)
    if (!this.#isStartable(run)) {
      this.#assigned.delete(key)
      return 'none'
    }
    if (this.#rejectedUids.has(uid)) return 'none'
    const isAccepted = this.#assigned.get(key)?.metadata.uid === uid
    if (!isAccepted) this.#assigned.delete(key)
    if (isAccepted || this.#hasRoom) {
      this.#assigned.set(key, run)
      return 'accepted'
    }
    this.#rejectedUids.add(uid)
    return 'rejected'
  }

  /** Takes all Runs that exist: those that are missing have ended. Returns those that are rejected. The first assigned ones are accepted. */
  replace(runs: readonly Run[]): readonly Run[] {
    const uids = new Set(runs.map(({ metadata }) => metadata.uid))
    for (const [key, run] of this.#assigned) if (!uids.has(run.metadata.uid)) this.#assigned.delete(key)
    for (const known of [this.#openUids, this.#rejectedUids]) for (const uid of known) if (!uids.has(uid)) known.delete(uid)
    for (const run of runs) if (isEnded(run)) this.ended(run.metadata.uid)
    const inOrder = runs.toSorted((a, b) => versionOf(a) - versionOf(b))
    return inOrder.filter(run => this.observe(run) === 'rejected')
  }

  /** The Run was deleted, or is no longer assigned to this worker. */
  remove(run: Run): void {
    this.#assigned.delete(objectKey(run))
    this.ended(run.metadata.uid)
  }

  /** The Run has ended, or its slot is free. */
  ended(uid: string): void {
    this.#openUids.delete(uid)
    this.#rejectedUids.delete(uid)
  }

  /** Removes the first assigned Run and counts it as started. */
  startNext(): Run | undefined {
    const [run] = this.#assigned.values()
    if (!run) return undefined
    this.#assigned.delete(objectKey(run))
    this.#startedUids.add(run.metadata.uid)
    this.#openUids.add(run.metadata.uid)
    return run
  }

  get #hasRoom(): boolean {
    const { lifecycle, slots } = this.#options
    const used = lifecycle === 'OneShot' ? this.#startedUids : this.#openUids
    return this.#assigned.size + used.size < slots
  }

  #isStartable({ metadata, spec, status }: Run): boolean {
    const phase = status?.phase ?? 'Queued'
    const isOwn = spec.workerName === this.#options.workerName && !this.#startedUids.has(metadata.uid)
    return isOwn && !metadata.deletionTimestamp && (phase === 'Queued' || phase === 'Assigned')
  }
}

const versionOf = ({ metadata }: Run) => Number(metadata.resourceVersion)
