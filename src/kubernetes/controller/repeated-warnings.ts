/** Which warnings about a failure that repeats are logged: the first one of each cause, and then one per interval with the number of those in between. */
export class RepeatedWarnings {
  readonly #nowMs: () => number
  readonly #intervalMs: number
  /** Those not logged for ten intervals are removed. */
  readonly #causes = new Map<string, { loggedMs: number; skipped: number }>()

  /** `nowMs` is monotonic; `intervalMs` defaults to 60,000. */
  constructor(nowMs: () => number, intervalMs = 60_000) {
    this.#nowMs = nowMs
    this.#intervalMs = intervalMs
  }

  /** If a failure of this cause is to be logged now, how many of it were not since the last one that was; otherwise undefined. */
  next(cause: string): number | undefined {
    const nowMs = this.#nowMs()
    const last = this.#causes.get(cause)
    if (last && nowMs - last.loggedMs < this.#intervalMs) {
      last.skipped++
      return undefined
    }
    for (const [each, entry] of this.#causes) if (nowMs - entry.loggedMs >= 10 * this.#intervalMs) this.#causes.delete(each)
    this.#causes.set(cause, { loggedMs: nowMs, skipped: 0 })
    return last?.skipped ?? 0
  }
}

/** What distinguishes errors that have one cause: the reason of a server's status, the code of a connection error, or the class. Texts may have numbers that differ each time. */
export function causeOf(error: Error): string {
  const { reason, code } = error as { reason?: unknown; code?: unknown }
  return String(reason ?? code ?? error.name)
}
