import { isCounted, isEnded, type Run, type Stack, stackFinalizer, subjectOf } from '../../../api/index.ts'
import { objectKey } from '../../../kubernetes/object/index.ts'

/** Runs that were deleted, and whose end the status of their Stack does not include yet. */
export class UncountedRuns {
  readonly #stacks: { get(key: string): Pick<Stack, 'metadata' | 'status'> | undefined }
  /** Keys of Runs by uid of their Stack. */
  readonly #keys = new Map<string, Set<string>>()

  constructor(stacks: { get(key: string): Pick<Stack, 'metadata' | 'status'> | undefined }) {
    this.#stacks = stacks
  }

  /** Number of Stacks with such Runs. */
  get size(): number {
    return this.#keys.size
  }

  /** Reports whether the Run must be kept for its Stack; then it is returned by the next {@link takeOf}. */
  check(run: Run): boolean {
    if (run.metadata.deletionTimestamp === undefined || !isEnded(run)) return false
    const { namespace, name, uid } = subjectOf(run)
    const stack = this.#stacks.get(`${namespace}/${name}`)
    if (stack?.metadata.uid !== uid || isReleased(stack) || isCounted(run, stack.status)) return false
    this.#keys.set(uid, (this.#keys.get(uid) ?? new Set()).add(objectKey(run)))
    return true
  }

  /** Removes and returns the keys of the Runs of a Stack. */
  takeOf(stackUid: string): Iterable<string> {
    const keys = this.#keys.get(stackUid) ?? []
    this.#keys.delete(stackUid)
    return keys
  }
}

/** Deleted, and kept by finalizers of others only: the controller of Stacks creates no further Run. */
function isReleased({ metadata }: Pick<Stack, 'metadata'>): boolean {
  return metadata.deletionTimestamp !== undefined && !metadata.finalizers?.includes(stackFinalizer)
}
