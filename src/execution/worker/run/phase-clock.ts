import type { RunStatus } from '../../../api/index.ts'

type PhaseSeconds = NonNullable<RunStatus['phaseSeconds']>

/** Measures how long a Run is in each phase, for its status: one call for each phase that begins, in their order. */
export class PhaseClock {
  readonly #nowMs: () => number
  readonly #seconds: { -readonly [Phase in keyof PhaseSeconds]: number } = {}
  #phase: keyof PhaseSeconds | undefined
  #sinceMs = 0

  /** @param nowMs a monotonic clock in milliseconds. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** The phase begins, and the one before ends. Undefined: the Run ends. Returns the durations of the phases that have ended. */
  enter(phase: keyof PhaseSeconds | undefined): PhaseSeconds {
    const nowMs = this.#nowMs()
    if (this.#phase) this.#seconds[this.#phase] = Math.round(nowMs - this.#sinceMs) / 1_000
    this.#phase = phase
    this.#sinceMs = nowMs
    return { ...this.#seconds }
  }
}
