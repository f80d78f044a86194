import type { WorkerPool, WorkerPoolStatus } from '../../../api/index.ts'
import { equalJson, findCondition, setCondition } from '../../../kubernetes/object/index.ts'
import { currentFailure, type PoolStatusCounts, type StartState } from '../pool/index.ts'

export type PoolStatusInput = {
  readonly pool: WorkerPool
  readonly counts: PoolStatusCounts
  readonly starts: StartState | undefined
  readonly specError: string | undefined
  readonly nowMs: number
}

/** The status of a pool: counts and the condition `Ready`; and how it differs from the present one. */
export function poolStatusOf({ pool, counts, starts, specError, nowMs }: PoolStatusInput): {
  readonly status: WorkerPoolStatus
  readonly change: 'None' | 'Count' | 'Urgent'
} {
  const { generation = 1 } = pool.metadata
  const ready = { type: 'Ready', ...poolReadyCondition(starts, specError), observedGeneration: generation } as const
  const conditions = setCondition(pool.status?.conditions, ready, nowMs)
  const status: WorkerPoolStatus = { ...pool.status, ...counts, observedGeneration: generation, conditions }
  if (equalJson(pool.status, status)) return { status, change: 'None' }
  const before = findCondition(pool.status?.conditions, 'Ready')
  const isUrgent = pool.status?.observedGeneration !== generation || before?.status !== ready.status || before.reason !== ready.reason
  return { status, change: isUrgent ? 'Urgent' : 'Count' }
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
