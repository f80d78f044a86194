import { type Run, runResource } from '../../api/index.ts'
import { assignedFinalizer } from '../caches.ts'
import type { Shared } from '../dispatch-parts.ts'
import type { Waiting } from './wait-reason.ts'

/** So many of the first Runs in the queue are told what they wait for; the others wait for the same. */
const toldRuns = 20

/** Writes which Worker has which Run, and what the others wait for. */
export class Placer {
  readonly #shared: Shared

  constructor(shared: Shared) {
    this.#shared = shared
  }

  assign(assignments: readonly { readonly run: Run; readonly worker: string }[]): void {
    const { writes } = this.#shared
    for (const { run, worker } of assignments) {
      // The rest follows when these are through: each that ends kicks.
      if (writes.isFull) break
      writes.begin(run, worker, () => this.#assign(run, worker))
    }
  }

  async #assign(run: Run, worker: string): Promise<void> {
    const { manager, caches, metrics, writes, nowMs } = this.#shared
    const { name, namespace, resourceVersion, finalizers = [] } = run.metadata
    // The version makes this the only assignment, and one of a Run that nobody has canceled meanwhile.
    const patch = { metadata: { finalizers: [...new Set([...finalizers, assignedFinalizer])] }, spec: { workerName: worker } }
    const assigned = await manager.client.resource(runResource).patch(name, patch, { type: 'merge', namespace, resourceVersion })
    caches.runs.applyLocal(assigned)
    metrics.runAssigned(Math.max(0, nowMs() - Date.parse(run.metadata.creationTimestamp)) / 1_000)
    await writes.markAssigned(assigned)
  }

  /** Tells the first in the queue what they wait for, where that is more than their turn. */
  tell(waiting: readonly Waiting[]): void {
    const { writes } = this.#shared
    let told = 0
    for (const { run, reason, message } of waiting) {
      if (told >= toldRuns || writes.isFull) return
      const isMoreThanTurn = reason !== 'NoWorker' || message.includes('has joined')
      if (!isMoreThanTurn || ++told > toldRuns || (run.status?.reason === reason && run.status.message === message)) continue
      writes.begin(run, undefined, () => writes.status(run, { phase: 'Queued', reason, message }))
    }
  }
}
