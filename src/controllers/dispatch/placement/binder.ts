import { type Run, runResource } from '../../../api/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import { assignedFinalizer } from '../caches.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import type { Assignment } from './decide-placement.ts'

/** Writes assignments to Runs. */
export class Binder {
  readonly #context: DispatchContext

  constructor(context: DispatchContext) {
    this.#context = context
  }

  /** Begins a write for each assignment. `onBind` is called before the write; its result is reported by `RunWritesDependencies.onEnd`. */
  bind(assignments: readonly Assignment[], onBind: (run: Run, worker: string) => void): void {
    const { caches, writes } = this.#context
    for (const { key, worker } of assignments) {
      const run = caches.runs.get(key)
      if (!run) continue
      onBind(run, worker)
      writes.begin(run, () => this.#writeBinding(run, worker))
    }
  }

  async #writeBinding(run: Run, worker: string): Promise<void> {
    const { manager, caches, metrics, nowMs } = this.#context
    const { name, namespace, resourceVersion, finalizers = [] } = run.metadata
    const patch = {
      metadata: { finalizers: [...new Set([...finalizers, assignedFinalizer])] },
      spec: { workerName: worker, assignedAt: rfc3339(nowMs()) },
    }
    // The resourceVersion makes the write fail if the Run was assigned or canceled meanwhile.
    const assigned = await manager.leaderClient.resource(runResource).patch(name, patch, { type: 'merge', namespace, resourceVersion })
    caches.runs.applyLocal(assigned)
    metrics.runAssigned(run, Math.max(0, nowMs() - Date.parse(run.metadata.creationTimestamp)) / 1_000)
  }
}
