type Wake = { atMs: number; order: number; run: () => void }

/**
 * A clock that moves only when told to: serves as the `Clock` of the client and the `Timers` of controllers. Timers that
 * are due together fire in the order in which they were set.
 */
export class VirtualTime {
  #nowMs = 0
  #order = 0
  #wakes: Wake[] = []

  readonly nowMs = (): number => this.#nowMs

  readonly after = (delayMs: number, run: () => void): (() => void) => {
    const wake = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run }
    this.#wakes.push(wake)
    return () => {
      this.#wakes = this.#wakes.filter(other => other !== wake)
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

  /** Moves the clock by `ms`, stopping at each timer on the way and letting everything that follows from it run. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms
    await settle()
    for (;;) {
      const next = this.#wakes.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs || a.order - b.order)[0]
      if (!next) break
      this.#wakes = this.#wakes.filter(other => other !== next)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.run()
      await settle()
    }
    this.#nowMs = untilMs
  }

  /** Moves the clock without waking anybody: a process that was stopped (SIGSTOP) for `ms`. */
  jump(ms: number): void {
    this.#nowMs += ms
  }
}

/** Lets promise callbacks run until none is left that leads to another; no I/O happens meanwhile. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}
