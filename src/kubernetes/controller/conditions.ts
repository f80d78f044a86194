import { type Condition, findCondition, type KubeObject, setCondition } from '../object/index.ts'

/** Progress of a reconcile: done, in progress, or stalled until something is changed. */
export type Progress = {
  state: 'ready' | 'reconciling' | 'stalled'
  /** One CamelCase word, for programs. */
  reason: string
  /** One sentence for users, without secrets (invariant 9). */
  message: string
}

type WithConditions = { conditions?: Condition[] | undefined; observedGeneration?: number | undefined }

/**
 * Returns a status with `progress` in the conditions that kstatus reads (Flux, Argo CD, `kubectl wait --for=condition=Ready`): `Ready`
 * always; `Reconciling` and `Stalled` only while true, as kstatus requires. Sets `observedGeneration`. Transition times change
 * only when a condition's status changes, so that {@link patchStatusIfChanged} writes nothing when nothing changed.
 */
export function withProgress<Status extends WithConditions>(
  object: { metadata: { generation?: number | undefined } },
  status: Status,
  { state, reason, message }: Progress,
  nowMs: number = Date.now(),
): Status {
  const observedGeneration = object.metadata.generation
  const common = { reason, message, ...(observedGeneration !== undefined && { observedGeneration }) }
  const exceptional = state === 'reconciling' ? 'Reconciling' : state === 'stalled' ? 'Stalled' : undefined
  const kept = (status.conditions ?? []).filter(({ type }) => type === exceptional || (type !== 'Reconciling' && type !== 'Stalled'))
  let conditions = setCondition(kept, { type: 'Ready', status: state === 'ready' ? 'True' : 'False', ...common }, nowMs)
  if (exceptional) conditions = setCondition(conditions, { type: exceptional, status: 'True', ...common }, nowMs)
  return { ...status, conditions, ...(observedGeneration !== undefined && { observedGeneration }) }
}

/** Status of an object by kstatus' rules. */
export type KstatusResult = { status: 'Current' | 'InProgress' | 'Failed' | 'Terminating'; message: string }

/**
 * Status of an object by kstatus' rules for custom resources, for owners that wait for what they own. An object without conditions is
 * Current once its generation is observed. The special rules of built-in kinds such as Deployments are not applied.
 */
export function kstatusOf({ metadata, status }: KubeObject<{ status?: unknown }>): KstatusResult {
  if (metadata.deletionTimestamp) return { status: 'Terminating', message: 'being deleted' }
  const { observedGeneration, conditions } = (status ?? {}) as WithConditions
  if (observedGeneration !== undefined && observedGeneration !== metadata.generation) {
    return {
      status: 'InProgress',
      message: `generation ${metadata.generation} is not observed yet, the last observed one is ${observedGeneration}`,
    }
  }
  const list = Array.isArray(conditions) ? conditions : undefined
  const stalled = findCondition(list, 'Stalled')
  if (stalled?.status === 'True') return { status: 'Failed', message: `${stalled.reason}: ${stalled.message}` }
  const reconciling = findCondition(list, 'Reconciling')
  if (reconciling?.status === 'True') return { status: 'InProgress', message: `${reconciling.reason}: ${reconciling.message}` }
  const ready = findCondition(list, 'Ready')
  if (ready && ready.status !== 'True') return { status: 'InProgress', message: `${ready.reason}: ${ready.message}` }
  return { status: 'Current', message: ready?.message ?? 'no condition reports otherwise' }
}
