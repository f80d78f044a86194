import type { VirtualTimers } from '../../../kubernetes/testing/virtual-timers.ts'

/** A process or a thread on virtual time, which can be stopped (SIGSTOP), continued and killed. */
export class SimulatedProcess {
  readonly #time: VirtualTimers
  #isAlive = true
  #isPaused = false
  /** What became due while it was stopped. On SIGCONT Node calls timers before it reads sockets. */
  #timers: (() => void)[] = []
  #messages: (() => void)[] = []

  constructor(time: VirtualTimers) {
    this.#time = time
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  get isRunning(): boolean {
    return this.#isAlive && !this.#isPaused
  }

  /** Calls `handle` when the process reads its messages. */
  receive(handle: () => void): void {
    if (this.isRunning) handle()
    else if (this.#isAlive) this.#messages.push(handle)
  }

  readonly after = (ms: number, run: () => void): (() => void) => {
    let isCanceled = false
    const runUnlessCanceled = (): void => {
      if (!isCanceled) run()
    }
    const cancel = this.#time.after(ms, () => {
      if (this.isRunning) runUnlessCanceled()
      else if (this.#isAlive) this.#timers.push(runUnlessCanceled)
    })
    return () => {
      isCanceled = true
      cancel()
    }
  }

  sleep(ms: number): Promise<void> {
    return new Promise(resolve => this.after(ms, resolve))
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    const due = [...this.#timers.splice(0), ...this.#messages.splice(0)]
    for (const run of due) this.receive(run)
  }

  kill(): void {
    this.#isAlive = false
  }
}
