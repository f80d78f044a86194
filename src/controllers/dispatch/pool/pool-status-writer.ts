import { type WorkerPoolStatus, workerPoolResource } from '../../../api/index.ts'
import { coerceError, patchStatusIfChanged } from '../../../kubernetes/controller/index.ts'
import { setCondition } from '../../../kubernetes/object/index.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import type { PoolsDecision } from './decide-pools.ts'
import { currentFailure, type StartState } from './start-state.ts'
import type { WorkerStarter } from './worker-starter.ts'

/** Counts of a pool change with every Run; the status is written less often. */
const statusIntervalMs = 500

/** Writes the counts and the condition `Ready` of pools. */
export class PoolStatusWriter {
  readonly #context: DispatchContext
  readonly #starter: WorkerStarter
  /** By pool: time of the last write. */
  readonly #writtenAtMs = new Map<string, number>()

  constructor(context: DispatchContext, starter: WorkerStarter) {
    this.#context = context
    this.#starter = starter
  }

  /** @returns milliseconds until a postponed status must be written; Infinity if there is none. */
  write({ pools, errors }: PoolsDecision, nowMs: number): number {
    const { caches, manager, log } = this.#context
    let requeueAfterMs = Number.POSITIVE_INFINITY
    for (const pool of caches.pools.list()) {
      const { name, generation } = pool.metadata
      const counts = pools.get(name)
      // While numbers of workers are being claimed another write of the status would conflict.
      if (!counts || this.#starter.isClaiming(name)) continue
      const ready = poolReadyCondition(this.#starter.states.get(name), errors.get(name))
      const conditions = setCondition(pool.status?.conditions, { type: 'Ready', ...ready, observedGeneration: generation ?? 1 }, nowMs)
      const next: WorkerPoolStatus = { ...pool.status, ...counts, observedGeneration: generation ?? 1, conditions }
      const lastMs = this.#writtenAtMs.get(name) ?? Number.NEGATIVE_INFINITY
      if (nowMs - lastMs < statusIntervalMs) {
        requeueAfterMs = Math.min(requeueAfterMs, statusIntervalMs - (nowMs - lastMs))
        continue
      }
      if (JSON.stringify(pool.status) === JSON.stringify(next)) continue
      this.#writtenAtMs.set(name, nowMs)
      patchStatusIfChanged(manager.leaderClient.resource(workerPoolResource), pool, next).then(
        written => caches.pools.applyLocal(written),
        (thrown: unknown) => log.debug({ err: coerceError(thrown), pool: name }, 'failed to write the status of the pool'),
      )
    }
    return requeueAfterMs
  }
}

/** The condition `Ready` of a pool: whether its workers can be started. */
export function poolReadyCondition(state: StartState | undefined, specError: string | undefined) {
  const failure = state && currentFailure(state)
  if (state && failure) {
    const message = state.failures > 0 ? `${failure.message}; failed starts in a row: ${state.failures}` : failure.message
    return { status: 'False', reason: failure.reason, message } as const
  }
  if (specError !== undefined) return { status: 'False', reason: 'InvalidSchedule', message: specError } as const
  return { status: 'True', reason: 'Ready', message: 'workers can be started' } as const
}
