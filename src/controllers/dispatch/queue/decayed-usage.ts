/**
 * Usage with exponential decay: `U(now) = Σ cost · 2^(-(now - t) / halfLife)`, as in the fair share of Slurm (PriorityDecayHalfLife,
 * https://slurm.schedmd.com/classic_fair_share.html) and HTCondor (PRIORITY_HALFLIFE).
 *
 * The stored value is `U(now)` times `2^((now - base) / halfLife)`. It changes only when usage is charged, not with time, and it orders tenants
 * like their usage. Nothing has to be sorted again as time passes.
 */
export class UsageScale {
  readonly halfLifeMs: number
  #baseMs: number | undefined

  /** @param nowMs the current time. Needed if the first charge lies far in the past, so that later values do not overflow. Default: the time of the first charge. */
  constructor(halfLifeMs: number, nowMs?: number) {
    if (!Number.isFinite(halfLifeMs) || halfLifeMs <= 0) throw new RangeError(`halfLifeMs must be a number > 0, got ${halfLifeMs}`)
    this.halfLifeMs = halfLifeMs
    this.#baseMs = nowMs
  }

  /** The scaled value of `costMs` charged at `atMs`, which must not be in the future. */
  scaled(costMs: number, atMs: number): number {
    this.#baseMs ??= atMs
    return costMs * 2 ** ((atMs - this.#baseMs) / this.halfLifeMs)
  }

  /** The decayed usage at `nowMs` of a scaled account, in slot milliseconds. */
  usageMs(account: number, nowMs: number): number {
    return account / 2 ** ((nowMs - (this.#baseMs ?? nowMs)) / this.halfLifeMs)
  }

  /**
   * Moves the base to `nowMs`, long before values overflow. Returns the factor that all accounts must be multiplied by, a power of two so that
   * their order is preserved exactly; undefined if the base was not moved.
   */
  rebase(nowMs: number): number | undefined {
    const halfLives = Math.floor((nowMs - (this.#baseMs ?? nowMs)) / this.halfLifeMs)
    if (halfLives < 256) return undefined
    this.#baseMs = (this.#baseMs ?? nowMs) + halfLives * this.halfLifeMs
    return 2 ** -halfLives
  }
}
