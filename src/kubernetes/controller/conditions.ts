import { type Condition, findCondition, type KubeObject, setCondition } from '../object/index.ts'

/** Where a reconcile stands: done, on its way, or unable to go on until somebody changes something. */
export type Progress = {
  state: 'ready' | 'reconciling' | 'stalled'
  /** One CamelCase word, for programs. */
  reason: string
  /** One sentence, for people, without secrets (invariant 9). */
  message: string
}

type WithConditions = { conditions?: Condition[] | undefined; observedGeneration?: number | undefined }

/**
 * A status that says `progress` in the conditions kstatus reads (Flux, Argo CD, `kubectl wait --for=condition=Ready`): `Ready`
 * always; `Reconciling` and `Stalled` only while they are true, as kstatus asks. Sets `observedGeneration`. The times move
 * only where a condition's status changes, so that {@link patchStatusIfChanged} writes nothing when nothing changed.
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

/** What kstatus says of an object. */
export type KstatusVerdict = { status: 'Current' | 'InProgress' | 'Failed' | 'Terminating'; message: string }

/**
 * What an object with conditions says of itself, by kstatus' rules for custom resources: for owners that wait for what
 * they own. An object without conditions is Current once its generation was observed. Built-in kinds such as Deployments
 * have rules of their own, which are not known here.
 */
export function kstatusOf({ metadata, status }: KubeObject<{ status?: unknown }>): KstatusVerdict {
  if (metadata.deletionTimestamp) return { status: 'Terminating', message: 'being deleted' }
  const { observedGeneration, conditions } = (status ?? {}) as WithConditions
  if (observedGeneration !== undefined && observedGeneration !== metadata.generation) {
    return { status: 'InProgress', message: `generation ${metadata.generation} is not observed yet, ${observedGeneration} is` }
  }
  const list = Array.isArray(conditions) ? conditions : undefined
  const stalled = findCondition(list, 'Stalled')
  if (stalled?.status === 'True') return { status: 'Failed', message: `${stalled.reason}: ${stalled.message}` }
  const reconciling = findCondition(list, 'Reconciling')
  if (reconciling?.status === 'True') return { status: 'InProgress', message: `${reconciling.reason}: ${reconciling.message}` }
  const ready = findCondition(list, 'Ready')
  if (ready && ready.status !== 'True') return { status: 'InProgress', message: `${ready.reason}: ${ready.message}` }
  return { status: 'Current', message: ready?.message ?? 'nothing says otherwise' }
}
