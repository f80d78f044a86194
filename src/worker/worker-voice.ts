import { rfc3339 } from '../kube/index.ts'
import type { DrainReason } from './decide-step.ts'
import type { WorkerSays } from './registration.ts'

/** What a worker does is said after so long, as it is then: Runs that come and go faster are no write each. */
export const sayAfterMs = 500
/** Since when a worker is idle is said anew when it is off by so much: by it, pools let go of workers. */
const idleAccuracyMs = 5_000

export type WorkerDoes = {
  /** Keys of the Runs it works on. */
  readonly runs: readonly string[]
  /** Wall clock; undefined while it works. */
  readonly idleSinceMs: number | undefined
  /** Why it drains, if it does. */
  readonly draining?: DrainReason | undefined
  /** Keys of the sources it has worked with. */
  readonly caches?: readonly string[]
}

/** Says what a worker does: soon, in order, the newest only, and nothing that was said already. */
export class WorkerVoice {
  readonly #does: () => WorkerDoes
  readonly #say: (status: WorkerSays) => Promise<void>
  #said = ''
  #saying: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  /**
   * @param does how it is at the moment.
   * @param say writes it; its errors are the caller's to handle.
   */
  constructor(does: () => WorkerDoes, say: (status: WorkerSays) => Promise<void>) {
    this.#does = does
    this.#say = say
  }

  /** Something has changed. */
  changed(): void {
    this.#timer ??= setTimeout(() => void this.now(), sayAfterMs)
  }

  /** Says it at once; resolves when it is said. */
  now(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#saying = this.#saying.then(async () => {
      const does = this.#does()
      const words = wordsOf(does)
      if (words === this.#said) return
      this.#said = words
      await this.#say(statusOf(does))
    })
    return this.#saying
  }

  /** Says nothing more; resolves when what is being said has been. */
  async end(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#saying
  }
}

function statusOf({ runs, idleSinceMs, draining, caches = [] }: WorkerDoes): WorkerSays {
  return {
    phase: draining !== undefined ? 'Draining' : runs.length > 0 ? 'Busy' : 'Ready',
    runs: [...runs],
    idleSince: idleSinceMs === undefined ? null : rfc3339(idleSinceMs),
    // Null where it was said and is not so any more.
    reason: draining ?? null,
    ...(caches.length > 0 && { caches: [...caches] }),
  }
}

function wordsOf({ runs, idleSinceMs, draining, caches }: WorkerDoes): string {
  return JSON.stringify([draining, runs, idleSinceMs === undefined ? null : Math.floor(idleSinceMs / idleAccuracyMs), caches])
}
