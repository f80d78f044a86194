import { seededRandom } from '../../kubernetes/util/index.ts'

/** The distributions of a simulation, over the numbers of {@link seededRandom}: the same seed gives the same draws. */
export class SeededRandom {
  /** 0 ≤ x < 1 */
  readonly next: () => number

  /** @param seed any number; only its lower 32 bits are used. */
  constructor(seed: number) {
    this.next = seededRandom(seed)
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
