/** Invariant 10: at most this many keys are series of a metric. */
const maxKeys = 5
/** After this time a slow reconcile is forgotten. */
const maxAgeMs = 600_000

/** The keys with the slowest reconciles of the last ten minutes. */
export class SlowestKeys {
  #slowest: { key: string; seconds: number; atMs: number }[] = []

  record(key: string, seconds: number, nowMs: number): void {
    const last = this.#slowest.at(-1)
    if (this.#slowest.length === maxKeys && last && seconds <= last.seconds && nowMs - last.atMs < maxAgeMs) return
    const others = this.#slowest.filter(other => (other.key !== key || other.seconds > seconds) && nowMs - other.atMs < maxAgeMs)
    if (!others.some(other => other.key === key)) others.push({ key, seconds, atMs: nowMs })
    this.#slowest = others.sort((a, b) => b.seconds - a.seconds).slice(0, maxKeys)
  }

  /** Slowest first. */
  list(nowMs: number): { key: string; seconds: number }[] {
    return this.#slowest.filter(({ atMs }) => nowMs - atMs < maxAgeMs).map(({ key, seconds }) => ({ key, seconds }))
  }
}
