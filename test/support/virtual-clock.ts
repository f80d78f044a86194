type VirtualTimer = { atMs: number; order: number; run: () => void }

/**
 * A clock that advances only on request: both the `Clock` of the client and the `Timers` of controllers. Timers that are
 * due at the same time fire in the order in which they were set.
 */
export class VirtualClock {
  #nowMs = 0
  #order = 0
  #timers: VirtualTimer[] = []

  readonly nowMs = (): number => this.#nowMs

  readonly after = (delayMs: number, run: () => void): (() => void) => {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter(other => other !== timer)
    }
  }

  readonly sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const done = () => {
        cancel()
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const cancel = this.after(ms, done)
      signal?.addEventListener('abort', done)
    })

  /** Advances the clock by `ms`, fires each timer that becomes due, and runs the promise callbacks that follow from it. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms
    await settle()
    for (;;) {
      const next = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs || a.order - b.order)[0]
      if (!next) break
      this.#timers = this.#timers.filter(other => other !== next)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.run()
      await settle()
    }
    this.#nowMs = untilMs
  }

  /** Advances the clock without firing timers: a process that was stopped (SIGSTOP) for `ms`. */
  jump(ms: number): void {
    this.#nowMs += ms
  }
}

/** Runs promise callbacks until chains of up to 20 have settled, without I/O. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}
