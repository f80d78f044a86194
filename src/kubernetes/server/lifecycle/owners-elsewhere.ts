import type { OwnerReference } from '../../object/index.ts'

/** An owner that is not here: the object of this name and UID in a table (see `getObject`) of a cluster-scoped kind. */
export type OwnerElsewhere = Pick<OwnerReference, 'apiVersion' | 'kind' | 'name' | 'uid'> & {
  readonly table: string
  readonly plural: string
}

/** How a server that is one of several partitions finds owners of its objects in the others. */
export type OwnerLookUp = {
  /** Whether objects of a cluster-scoped kind may be in another partition, or have another UID there. Of other kinds what is stored here decides. */
  mayBeElsewhere(owner: Pick<OwnerElsewhere, 'table' | 'name'>): boolean
  /** Whether an owner that is not here exists. @throws {Error} if that cannot be found out now: it is asked again. */
  exists(owner: OwnerElsewhere): Promise<boolean>
}

export type OwnersElsewhereOptions = OwnerLookUp & {
  hasDependents(uid: string): boolean
  /** Called when an owner is known not to exist. */
  onAbsent(uid: string): void
  onError(error: unknown, message: string): void
  /** Between the end of a round of questions and the next one. Default 30,000. */
  readonly intervalMs?: number | undefined
}

const defaultIntervalMs = 30_000

/**
 * The owners that only another partition may have. Their deletion is not observed here, so that each is asked for in every round, one after the other,
 * while it has dependents here. What is not known exists: an object whose owner is in another partition must not be deleted because of that.
 */
export class OwnersElsewhere {
  readonly #options: OwnersElsewhereOptions
  /** By UID. */
  readonly #owners = new Map<string, OwnerElsewhere>()
  readonly #absent = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: OwnersElsewhereOptions) {
    this.#options = options
  }

  /** Whether the owner may exist in another partition. From then on it is asked for. */
  mayExist(owner: OwnerElsewhere): boolean {
    if (this.#absent.has(owner.uid) || !this.#options.mayBeElsewhere(owner)) return false
    if (!this.#owners.has(owner.uid)) this.#owners.set(owner.uid, owner)
    this.#schedule()
    return true
  }

  /** An object with this UID was deleted here: it is nowhere else. */
  deleted(uid: string): void {
    if (!this.#options.hasDependents(uid)) return
    this.#absent.add(uid)
    this.#schedule()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    if (this.#isStopped || this.#timer) return
    this.#timer = setTimeout(() => void this.#askAll().finally(() => this.#scheduleNext()), this.#options.intervalMs ?? defaultIntervalMs)
    this.#timer.unref()
  }

  #scheduleNext(): void {
    this.#timer = undefined
    if (this.#owners.size + this.#absent.size > 0) this.#schedule()
  }

  async #askAll(): Promise<void> {
    const { hasDependents, exists, onAbsent, onError } = this.#options
    for (const uid of this.#absent) if (!hasDependents(uid)) this.#absent.delete(uid)
    for (const owner of [...this.#owners.values()]) {
      if (this.#isStopped) return
      const { uid, kind, name } = owner
      if (!hasDependents(uid)) this.#owners.delete(uid)
      else
        try {
          if (await exists(owner)) continue
          this.#owners.delete(uid)
          this.#absent.add(uid)
          onAbsent(uid)
        } catch (error) {
          onError(error, `cannot find out whether ${kind} ${name}, which owns objects here, exists in another partition; asking again`)
          // The others are most likely where this one is.
          return
        }
    }
  }
}
