import type { OwnerReference } from '../../object/index.ts'

/** An owner that is not here: an object of a cluster-scoped kind, whose table (see `getObject`) this server has. */
export type OwnerElsewhere = Pick<OwnerReference, 'apiVersion' | 'kind' | 'name' | 'uid'> & {
  readonly table: string
  readonly plural: string
}

/** How a server that is one of several partitions finds owners of its objects in the others. */
export type OwnerLookUp = {
  /** Where else than here the object may be: `lookUp` finds it, or it cannot be found; undefined: what is stored here decides. */
  elsewhere(owner: Pick<OwnerElsewhere, 'table' | 'name'>): 'lookUp' | 'unknown' | undefined
  /** Whether the owner exists. @throws {Error} if that cannot be found out now: it is asked again. */
  exists(owner: OwnerElsewhere): Promise<boolean>
}

export type OwnersElsewhereOptions = OwnerLookUp & {
  hasDependents(uid: string): boolean
  /** Called when owners are known not to exist. */
  onAbsent(uids: readonly string[]): void
  onError(error: unknown, message: string): void
  /** Between the end of a round of questions and the next one. Default 30,000. */
  readonly intervalMs?: number | undefined
}

const defaultIntervalMs = 30_000
/** In one round: those that are left are asked for in the next one. */
const maxQuestions = 1_000
/** So many unanswered questions, one after the other, end a round: most likely the others would not be answered either. */
const maxFailures = 3

/**
 * The owners that only another partition may have. Their deletion is not observed here, so that each is asked for in every round, one after the other,
 * while it has dependents here. What is not known exists: an object whose owner is in another partition must not be deleted because of that.
 * An owner is what a reference says, all of it: a wrong reference says nothing about the owner of others.
 */
export class OwnersElsewhere {
  readonly #options: OwnersElsewhereOptions
  /** By {@link keyOf}, in the order in which they are asked for. */
  readonly #owners = new Map<string, OwnerElsewhere>()
  readonly #absent = new Map<string, OwnerElsewhere>()
  /** UIDs of objects that were deleted here. */
  readonly #deleted = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: OwnersElsewhereOptions) {
    this.#options = options
  }

  /** Whether the owner may exist in another partition. From then on it is asked for. */
  mayExist(owner: OwnerElsewhere): boolean {
    const where = this.#options.elsewhere(owner)
    const key = keyOf(owner)
    if (where === undefined || this.#deleted.has(owner.uid) || this.#absent.has(key)) return false
    if (where === 'unknown') return true
    if (!this.#owners.has(key)) this.#owners.set(key, owner)
    this.#schedule()
    return true
  }

  /** An object with this UID was deleted here: it is nowhere else. */
  deleted(uid: string): void {
    if (!this.#options.hasDependents(uid)) return
    this.#deleted.add(uid)
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
    if (this.#owners.size + this.#absent.size + this.#deleted.size > 0) this.#schedule()
  }

  async #askAll(): Promise<void> {
    const { hasDependents, onAbsent } = this.#options
    for (const uid of this.#deleted) if (!hasDependents(uid)) this.#deleted.delete(uid)
    for (const [key, { uid }] of this.#absent) if (!hasDependents(uid)) this.#absent.delete(key)
    const found: string[] = []
    let failures = 0
    for (const [key, owner] of [...this.#owners].slice(0, maxQuestions)) {
      if (this.#isStopped || failures === maxFailures) break
      this.#owners.delete(key)
      if (!hasDependents(owner.uid)) continue
      const exists = await this.#ask(owner)
      failures = exists === undefined ? failures + 1 : 0
      if (exists === false) {
        this.#absent.set(key, owner)
        found.push(owner.uid)
      }
      // Behind those that were not asked for yet.
      else this.#owners.set(key, owner)
    }
    if (found.length > 0 && !this.#isStopped) onAbsent(found)
  }

  /** @returns undefined if it is not known. */
  async #ask(owner: OwnerElsewhere): Promise<boolean | undefined> {
    const { exists, onError } = this.#options
    try {
      return await exists(owner)
    } catch (error) {
      const { kind, name } = owner
      onError(error, `cannot find out whether ${kind} ${name}, which owns objects here, exists in another partition; asking again`)
      return undefined
    }
  }
}

const keyOf = ({ apiVersion, kind, name, uid }: OwnerElsewhere) => JSON.stringify([apiVersion, kind, name, uid])
