import { countUnsavedStates } from './supervisor/index.ts'

/** The supervisor of the host gives a state up after a worker has reported its Run, so a check at the end of a Run is not enough. */
const checkIntervalMs = 30_000

/** How many states the host of a worker keeps because the stores did not accept them. */
export class UnsavedStates {
  readonly #runsDir: string
  readonly #onChange: () => void
  #timer: NodeJS.Timeout | undefined
  #count = 0
  #wasReported = false

  constructor(runsDir: string, onChange: () => void) {
    this.#runsDir = runsDir
    this.#onChange = onChange
  }

  /** For the status of the worker: undefined as long as there have been none, null when there are none any more. */
  get status(): number | null | undefined {
    if (this.#count > 0) return this.#count
    return this.#wasReported ? null : undefined
  }

  start(): void {
    this.#check()
    this.#timer = setInterval(() => this.#check(), checkIntervalMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #check(): void {
    const count = countUnsavedStates(this.#runsDir)
    if (count === this.#count) return
    this.#count = count
    this.#wasReported = true
    this.#onChange()
  }
}
