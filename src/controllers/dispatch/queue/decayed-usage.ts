/**
 * Usage that is forgotten by half in each half-life: `U(now) = Σ cost · 2^(-(now - t) / halfLife)`, as in the fair share of
 * Slurm (PriorityDecayHalfLife, https://slurm.schedmd.com/classic_fair_share.html) and HTCondor (PRIORITY_HALFLIFE).
 *
 * What is kept is `U(now)` times `2^((now - base) / halfLife)`: that number does not change while time passes, only when
 * something is charged, and it orders tenants as their usage does. So nothing has to be sorted anew as time goes by.
 */
export class UsageScale {
  readonly halfLifeMs: number
  #baseMs: number | undefined

  /** @param nowMs what is charged first may be long ago, and the present must stay within what a number holds. Default: when that was. */
  constructor(halfLifeMs: number, nowMs?: number) {
    if (!Number.isFinite(halfLifeMs) || halfLifeMs <= 0) throw new RangeError(`halfLifeMs must be a number > 0, got ${halfLifeMs}`)
    this.halfLifeMs = halfLifeMs
    this.#baseMs = nowMs
  }

  /** What `costMs` at `atMs`, which is not in the future, adds to a scaled account. */
  scaled(costMs: number, atMs: number): number {
    this.#baseMs ??= atMs
    return costMs * 2 ** ((atMs - this.#baseMs) / this.halfLifeMs)
  }

  /** The usage that a scaled account stands for at `nowMs`, in milliseconds of a slot. */
  usageMs(account: number, nowMs: number): number {
    return account / 2 ** ((nowMs - (this.#baseMs ?? nowMs)) / this.halfLifeMs)
  }

  /**
   * Long before numbers grow too large, moves the base to `nowMs`. Returns what all accounts are to be multiplied with, a
   * power of two, so that their order stays exactly the same; undefined when there is nothing to do.
   */
  rebase(nowMs: number): number | undefined {
    const halfLives = Math.floor((nowMs - (this.#baseMs ?? nowMs)) / this.halfLifeMs)
    if (halfLives < 256) return undefined
    this.#baseMs = (this.#baseMs ?? nowMs) + halfLives * this.halfLifeMs
    return 2 ** -halfLives
  }
}
