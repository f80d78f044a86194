import { type ConditionUpdate, type KubeObject, setCondition } from '../../../object/index.ts'
import type { Crd, CrdBody, CrdNames } from './crd.ts'

const notInAllPartitions = 'NotInAllPartitions'

/** Whether the kinds of a definition are served. */
export function isServed({ status }: Crd): boolean {
  const conditions = status?.conditions ?? []
  const isAccepted = conditions.some(({ type, status: value }) => type === 'NamesAccepted' && value === 'True')
  return isAccepted && !conditions.some(({ type, reason }) => type === 'Established' && reason === notInAllPartitions)
}

/** Names of a definition that another kind already uses, and the condition that reports it. */
export type NameConflict = { reason: string; message: string; fields: (keyof CrdNames)[] }

/**
 * The status of a definition. It is set in the write itself, so that the kind is usable when the write is answered.
 * @param conflict the names that another kind uses; undefined if all are free.
 * @param establish why the kind is not established yet; undefined: it is. Not asked of a definition that was Established before.
 */
export function crdStatus(
  crd: Crd,
  oldCrd: Crd | undefined,
  conflict: NameConflict | undefined,
  nowMs: number,
  establish?: (crd: Crd) => string | undefined,
): NonNullable<CrdBody['status']> {
  const { names, versions } = crd.spec
  const storage = versions.find(version => version.storage)?.name
  const stored = oldCrd?.status?.storedVersions ?? []
  const oldConditions = oldCrd?.status?.conditions
  const accepted: ConditionUpdate = conflict
    ? { type: 'NamesAccepted', status: 'False', reason: conflict.reason, message: conflict.message }
    : { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }
  const wasEstablished = oldConditions?.some(({ type, status }) => type === 'Established' && status === 'True')
  const missing = conflict || wasEstablished ? undefined : establish?.(crd)
  const established: ConditionUpdate = conflict
    ? { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' }
    : missing !== undefined
      ? { type: 'Established', status: 'False', reason: notInAllPartitions, message: missing }
      : { type: 'Established', status: 'True', reason: 'InitialNamesAccepted', message: 'the initial names have been accepted' }
  return {
    ...oldCrd?.status,
    conditions: setCondition(setCondition(oldConditions, accepted, nowMs), established, nowMs),
    acceptedNames: acceptedNames(names, oldCrd?.status?.acceptedNames, conflict?.fields ?? []),
    storedVersions: storage && !stored.includes(storage) ? [...stored, storage] : stored,
  }
}

/** Sets `storedVersions` to the storage version if a status update leaves it empty. */
export function ensureStorageVersion(object: KubeObject): void {
  const { spec, status } = object as Crd
  if (!status || typeof status !== 'object' || !Array.isArray(status.storedVersions ?? []) || status.storedVersions?.length) return
  object.status = { ...status, storedVersions: spec.versions.filter(({ storage }) => storage).map(({ name }) => name) }
}

/** Accepts each free name; a name with a conflict keeps its previous value. */
function acceptedNames(desired: CrdNames, oldNames: CrdNames = { plural: '', kind: '' }, used: readonly (keyof CrdNames)[]): CrdNames {
  const accepted = { ...desired }
  for (const field of used) {
    delete accepted[field]
    Object.assign(accepted, oldNames[field] === undefined ? {} : { [field]: oldNames[field] })
  }
  return accepted
}

/** The definition with the condition Terminating, as the response to its deletion shows it. */
export function markTerminating(object: KubeObject, nowMs: number): KubeObject {
  const { status } = object as Crd
  if (!status || status.conditions?.some(({ type }) => type === 'Terminating')) return object
  const terminating: ConditionUpdate = {
    type: 'Terminating',
    status: 'True',
    reason: 'InstanceDeletionPending',
    message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
  }
  return { ...object, status: { ...status, conditions: setCondition(status.conditions, terminating, nowMs) } }
}
