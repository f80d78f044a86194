import type { DrainReason } from './decide-step.ts'

/** Whether and why a worker drains. Only a drain that its object requests can be canceled, as long as no Run was interrupted for it. */
export class Drain {
  readonly #graceMs: number
  readonly #onGraceExpired: () => void
  #reason: DrainReason | undefined
  #timer: NodeJS.Timeout | undefined
  #isCancelable = false

  /** @param onGraceExpired interrupts the Runs that still run, `graceMs` after the drain has started. */
  constructor(graceMs: number, onGraceExpired: () => void) {
    this.#graceMs = graceMs
    this.#onGraceExpired = onGraceExpired
  }

  get reason(): DrainReason | undefined {
    return this.#reason
  }

  /** Starts to drain; returns false if it drains already. A drain that cannot be canceled makes one in progress final. */
  start(reason: DrainReason, { isCancelable = false } = {}): boolean {
    if (!isCancelable) this.#isCancelable = false
    if (this.#reason !== undefined) return false
    this.#reason = reason
    this.#isCancelable = isCancelable
    this.#timer = setTimeout(() => this.#expire(), Math.min(this.#graceMs, 2 ** 31 - 1)).unref()
    return true
  }

  /** Returns false if there is nothing to cancel, or it cannot be canceled any more. */
  cancel(): boolean {
    if (!this.#isCancelable) return false
    clearTimeout(this.#timer)
    this.#isCancelable = false
    this.#reason = undefined
    return true
  }

  #expire(): void {
    this.#isCancelable = false
    this.#onGraceExpired()
  }
}
