import type { Worker } from '../../api/index.ts'

/**
 * How long the last Worker of a pool stands for the next one: then somebody may have installed what it lacked, and one is started to
 * see. That costs a start in so many minutes while a Run waits for what its pool does not have.
 */
export const exampleForMs = 5 * 60_000

/** By pool: the Worker that was seen last, to know what one that is started would be like. */
export class WorkerTemplateCache {
  readonly #workers = new Map<string, Worker>()
  /** By pool: since when that Worker has been gone. */
  readonly #goneMs = new Map<string, number>()

  /** Those that still say something. */
  at(nowMs: number): ReadonlyMap<string, Worker> {
    for (const [pool, goneMs] of this.#goneMs) if (nowMs - goneMs >= exampleForMs) this.forget(pool)
    return this.#workers
  }

  see(worker: Worker): void {
    if (!worker.status) return
    this.#workers.set(worker.spec.pool, worker)
    this.#goneMs.delete(worker.spec.pool)
  }

  gone({ metadata, spec }: Worker, nowMs: number): void {
    if (this.#workers.get(spec.pool)?.metadata.uid === metadata.uid) this.#goneMs.set(spec.pool, nowMs)
  }

  /** A pool that changed makes other Workers. */
  forget(pool: string): void {
    this.#workers.delete(pool)
    this.#goneMs.delete(pool)
  }
}
