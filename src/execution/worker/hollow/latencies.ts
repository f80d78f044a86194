/** Buckets per factor of two: a percentile is at most 4.5% too high. */
const perOctave = 16
const lowestMs = 0.01
const buckets = 30 * perOctave

/** A histogram with exponential buckets: constant memory for any number of values. */
export class Latencies {
  readonly #counts = new Float64Array(buckets)
  #count = 0
  #maxMs = 0

  get count(): number {
    return this.#count
  }

  get maxMs(): number {
    return this.#maxMs
  }

  add(ms: number): void {
    const bucket = Math.floor(Math.log2(Math.max(lowestMs, ms) / lowestMs) * perOctave)
    this.#counts[Math.min(buckets - 1, bucket)]!++
    this.#count++
    this.#maxMs = Math.max(this.#maxMs, ms)
  }

  /** The upper bound of the bucket that contains the percentile, in milliseconds; 0 without values. */
  percentile(percent: number): number {
    const wanted = (this.#count * percent) / 100
    let seen = 0
    for (let bucket = 0; bucket < buckets; bucket++) {
      seen += this.#counts[bucket]!
      if (seen > 0 && seen >= wanted) return Math.min(this.#maxMs, lowestMs * 2 ** ((bucket + 1) / perOctave))
    }
    return 0
  }
}
