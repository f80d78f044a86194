import { assignedFinalizer, type Run } from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import { type ObjectVersion, versionOf } from './object-version.ts'

/** An ended Run that is being deleted and still has the {@link assignedFinalizer}. */
export type TerminatingRun = { readonly object: ObjectVersion; readonly finalizers: readonly string[] }

/** Ended Runs that are being deleted. Each keeps its finalizer until its subject has recorded its end: until then its epoch could be used again (invariant 3). */
export class TerminatingRuns {
  /** By key of the Run. */
  readonly #releasable = new Map<string, TerminatingRun>()
  /** Those whose end is not recorded, by subject and key of the Run. */
  readonly #retained = new Map<string, Map<string, TerminatingRun & { readonly epoch: number }>>()
  /** Uids of Runs whose finalizer was removed, until their deletion is observed. */
  readonly #released = new Set<string>()

  /** Runs whose finalizer may be removed. */
  releasable(): Iterable<TerminatingRun> {
    return this.#releasable.values()
  }

  /** Takes an ended Run. Returns true if it may be released. */
  observe(run: Run, subject: string, recordedEpoch: number): boolean {
    const key = objectKey(run)
    const { deletionTimestamp, finalizers = [], uid } = run.metadata
    const { epoch } = run.spec
    this.#remove(key, subject)
    if (deletionTimestamp === undefined || !finalizers.includes(assignedFinalizer) || this.#released.has(uid)) return false
    const terminating = { object: versionOf('Run', run), finalizers, epoch }
    const isReleasable = epoch <= recordedEpoch
    if (isReleasable) this.#releasable.set(key, terminating)
    else this.#retained.set(subject, (this.#retained.get(subject) ?? new Map()).set(key, terminating))
    return isReleasable
  }

  /** The subject has recorded the ends of its Runs up to this epoch. Returns true if a Run may be released now. */
  recorded(subject: string, recordedEpoch: number): boolean {
    let isAnyReleasable = false
    for (const [key, run] of this.#retained.get(subject) ?? []) {
      if (run.epoch > recordedEpoch) continue
      this.#remove(key, subject)
      this.#releasable.set(key, run)
      isAnyReleasable = true
    }
    return isAnyReleasable
  }

  /** The finalizer was removed. Until the deletion of the Run is observed, nothing more is decided for it. */
  released({ namespace, name, uid }: ObjectVersion): void {
    if (this.#releasable.delete(`${namespace}/${name}`)) this.#released.add(uid)
  }

  deleted(run: Run, subject: string): void {
    this.#remove(objectKey(run), subject)
    this.#released.delete(run.metadata.uid)
  }

  #remove(key: string, subject: string): void {
    this.#releasable.delete(key)
    const retained = this.#retained.get(subject)
    if (retained?.delete(key) && retained.size === 0) this.#retained.delete(subject)
  }
}
