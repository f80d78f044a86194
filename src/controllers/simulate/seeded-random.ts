/**
 * Seeded random numbers: the same seed gives the same sequence on every machine. The generator is Mulberry32 (T. Ettinger, public domain). Its 2^32
 * states are enough for the millions of draws of a simulation; it is not cryptographically secure.
 */
export class SeededRandom {
  #state: number

  /** @param seed any number; only its lower 32 bits are used. */
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

  /** Exponentially distributed with this mean: the time between two independent events. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next())
  }

  /** Geometrically distributed on 1, 2, 3, … with this mean, which is at least 1. */
  geometric(mean: number): number {
    return mean <= 1 ? 1 : 1 + Math.floor(Math.log(1 - this.next()) / Math.log(1 - 1 / mean))
  }

  /** An independent generator, so that draws of one component do not affect another. */
  fork(): SeededRandom {
    return new SeededRandom(this.next() * 0x1_0000_0000)
  }
}
