/**
 * Seeded chance: the same seed gives the same numbers, on every machine. The generator is Mulberry32 (T. Ettinger, public domain): 2^32
 * states, which is enough for millions of draws of a simulation and for nothing secret.
 */
export class SeededRandom {
  #state: number

  /** @param seed any number; its lower 32 bits count. */
  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 ≤ x < 1 */
  readonly next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** Exponential with this mean: the time between two events that know nothing of each other. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next())
  }

  /** 1, 2, 3, …: geometric with this mean, which is at least 1. */
  geometric(mean: number): number {
    return mean <= 1 ? 1 : 1 + Math.floor(Math.log(1 - this.next()) / Math.log(1 - 1 / mean))
  }

  /** A generator of its own, so that what one part draws does not change what another one gets. */
  fork(): SeededRandom {
    return new SeededRandom(this.next() * 0x1_0000_0000)
  }
}
