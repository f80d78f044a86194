import type { Worker } from '../../api/index.ts'

/**
 * How long a deleted Worker predicts the properties of the next one. After that a new worker is started to find out, as a missing engine may
 * have been installed meanwhile. That costs one start per interval while a Run waits for something that its pool lacks.
 */
export const templateTtlMs = 5 * 60_000

/** The most recent Worker of each pool, which predicts the properties of the next one that is started. */
export class WorkerTemplateCache {
  readonly #workers = new Map<string, Worker>()
  /** By pool: when that Worker was deleted. */
  readonly #deletedAtMs = new Map<string, number>()

  /** The templates that have not expired, by pool. */
  validAt(nowMs: number): ReadonlyMap<string, Worker> {
    for (const [pool, deletedAtMs] of this.#deletedAtMs) if (nowMs - deletedAtMs >= templateTtlMs) this.invalidate(pool)
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

  /** To be called when the spec of the pool has changed: its new Workers may differ. */
  invalidate(pool: string): void {
    this.#workers.delete(pool)
    this.#deletedAtMs.delete(pool)
  }
}
