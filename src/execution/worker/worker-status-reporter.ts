import type { WorkerStatus } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import type { DrainReason } from './decide-step.ts'
import type { WorkerSays } from './lease/registration.ts'

/** What a worker does is said after so long, as it is then: Runs that come and go faster are no write each. */
export const sayAfterMs = 500
/** Since when a worker is idle is said anew when it is off by so much: by it, pools let go of workers. */
const idleAccuracyMs = 5_000
/** What could not be said is said again, as it is then, after so long, and after twice as long each time. */
const againAfterMs = 2_000
const againAtMostMs = 60_000

export type WorkerDoes = {
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
  readonly #does: () => WorkerDoes
  readonly #say: (status: WorkerSays) => Promise<void>
  readonly #onError: (error: unknown) => void
  #said = ''
  #againMs = againAfterMs
  #isOver = false
  #saying: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  /**
   * @param does how it is at the moment.
   * @param say writes it.
   * @param onError told why it could not be written; it is tried again.
   */
  constructor(does: () => WorkerDoes, say: (status: WorkerSays) => Promise<void>, onError: (error: unknown) => void) {
    this.#does = does
    this.#say = say
    this.#onError = onError
  }

  /** Something has changed. */
  changed(): void {
    this.#in(sayAfterMs)
  }

  #in(ms: number): void {
    if (!this.#isOver) this.#timer ??= setTimeout(() => void this.now(), ms)
  }

  /** Says it at once; resolves when it is said. */
  now(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#saying = this.#saying.then(async () => {
      const does = this.#does()
      const words = wordsOf(does)
      if (words === this.#said) return
      try {
        await this.#say(statusOf(does))
        this.#said = words
        this.#againMs = againAfterMs
      } catch (error) {
        // It may have been written, or not: what was said before is not known any more.
        this.#said = ''
        this.#onError(error)
        this.#in(this.#againMs)
        this.#againMs = Math.min(againAtMostMs, this.#againMs * 2)
      }
    })
    return this.#saying
  }

  /** Says nothing more; resolves when what is being said has been. */
  async end(): Promise<void> {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#saying
  }
}

function statusOf({ runs, idleSinceMs, draining, caches = [], engines, isolation }: WorkerDoes): WorkerSays {
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

function wordsOf({ idleSinceMs, ...does }: WorkerDoes): string {
  return JSON.stringify([does, idleSinceMs === undefined ? null : Math.floor(idleSinceMs / idleAccuracyMs)])
}
