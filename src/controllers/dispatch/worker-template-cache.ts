import type { Worker } from '../../api/index.ts'

/**
 * How long the last Worker of a pool stands for the next one: then somebody may have installed what it lacked, and one is started to
 * see. That costs a start in so many minutes while a Run waits for what its pool does not have.
 */
export const templateTtlMs = 5 * 60_000

/** By pool: the Worker that was seen last, to know what one that is started would be like. */
export class WorkerTemplateCache {
  readonly #workers = new Map<string, Worker>()
  /** By pool: since when that Worker has been gone. */
  readonly #deletedAtMs = new Map<string, number>()

  /** Those that still say something. */
  validAt(nowMs: number): ReadonlyMap<string, Worker> {
    for (const [pool, goneMs] of this.#deletedAtMs) if (nowMs - goneMs >= templateTtlMs) this.invalidate(pool)
    return this.#workers
  }

  observe(worker: Worker): void {
    if (!worker.status) return
    this.#workers.set(worker.spec.pool, worker)
    this.#deletedAtMs.delete(worker.spec.pool)
  }

  workerDeleted({ metadata, spec }: Worker, nowMs: number): void {
    if (this.#workers.get(spec.pool)?.metadata.uid === metadata.uid) this.#deletedAtMs.set(spec.pool, nowMs)
  }

  /** A pool that changed makes other Workers. */
  invalidate(pool: string): void {
    this.#workers.delete(pool)
    this.#deletedAtMs.delete(pool)
  }
}
