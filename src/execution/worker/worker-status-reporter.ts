import type { WorkerStatus } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import type { DrainReason } from './decide-step.ts'
import type { WorkerStatusPatch } from './lease/registration.ts'

/** What a worker does is said after so long, as it is then: Runs that come and go faster are no write each. */
export const reportDelayMs = 500
/** Since when a worker is idle is said anew when it is off by so much: by it, pools let go of workers. */
const idleAccuracyMs = 5_000
/** What could not be said is said again, as it is then, after so long, and after twice as long each time. */
const retryDelayMs = 2_000
const maxRetryDelayMs = 60_000

export type WorkerActivity = {
  /** Keys of the Runs it works on. */
  readonly runs: readonly string[]
  /** Wall clock; undefined while it works. */
  readonly idleSinceMs: number | undefined
  /** Why it drains, if it does. */
  readonly draining?: DrainReason | undefined
  /** Keys of the sources it has worked with. */
  readonly caches?: readonly string[]
  /** By engine that it found: the version, null where there is none any more. Undefined: not looked for, or told at its registration. */
  readonly engines?: Readonly<Record<string, string | null>> | undefined
  /** The levels that it found it can give; undefined as above. */
  readonly isolation?: WorkerStatus['isolation'] | undefined
}

/** Says what a worker does: soon, in order, the newest only, and nothing that was said already. */
export class WorkerStatusReporter {
  readonly #does: () => WorkerActivity
  readonly #say: (status: WorkerStatusPatch) => Promise<void>
  readonly #onError: (error: unknown) => void
  #said = ''
  #againMs = retryDelayMs
  #isOver = false
  #saying: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  /**
   * @param does how it is at the moment.
   * @param say writes it.
   * @param onError told why it could not be written; it is tried again.
   */
  constructor(does: () => WorkerActivity, say: (status: WorkerStatusPatch) => Promise<void>, onError: (error: unknown) => void) {
    this.#does = does
    this.#say = say
    this.#onError = onError
  }

  /** Something has changed. */
  schedule(): void {
    this.#in(reportDelayMs)
  }

  #in(ms: number): void {
    if (!this.#isOver) this.#timer ??= setTimeout(() => void this.report(), ms)
  }

  /** Says it at once; resolves when it is said. */
  report(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#saying = this.#saying.then(async () => {
      const does = this.#does()
      const words = fingerprintOf(does)
      if (words === this.#said) return
      try {
        await this.#say(statusOf(does))
        this.#said = words
        this.#againMs = retryDelayMs
      } catch (error) {
        // It may have been written, or not: what was said before is not known any more.
        this.#said = ''
        this.#onError(error)
        this.#in(this.#againMs)
        this.#againMs = Math.min(maxRetryDelayMs, this.#againMs * 2)
      }
    })
    return this.#saying
  }

  /** Says nothing more; resolves when what is being said has been. */
  async close(): Promise<void> {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#saying
  }
}

function statusOf({ runs, idleSinceMs, draining, caches = [], engines, isolation }: WorkerActivity): WorkerStatusPatch {
  return {
    phase: draining !== undefined ? 'Draining' : runs.length > 0 ? 'Busy' : 'Ready',
    runs: [...runs],
    idleSince: idleSinceMs === undefined ? null : rfc3339(idleSinceMs),
    // Null where it was said and is not so any more.
    reason: draining ?? null,
    ...(caches.length > 0 && { caches: [...caches] }),
    ...(engines && { engines: engines }),
    ...(isolation && { isolation }),
  }
}

function fingerprintOf({ idleSinceMs, ...does }: WorkerActivity): string {
  return JSON.stringify([does, idleSinceMs === undefined ? null : Math.floor(idleSinceMs / idleAccuracyMs)])
}
