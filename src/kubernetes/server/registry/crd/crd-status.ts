import { type ConditionUpdate, type KubeObject, setCondition } from '../../../object/index.ts'
import type { Crd, CrdBody, CrdNames } from './crd.ts'

/** Names that others have already, and the words for it. */
export type NameConflict = { reason: string; message: string; fields: (keyof CrdNames)[] }

/**
 * The status of a definition, decided with its write so that it is usable as soon as the write is answered.
 * @param conflict names who has one of the names already; undefined when all are free.
 */
export function crdStatus(
  crd: Crd,
  before: Crd | undefined,
  conflict: NameConflict | undefined,
  nowMs: number,
): NonNullable<CrdBody['status']> {
  const { names, versions } = crd.spec
  const storage = versions.find(version => version.storage)?.name
  const stored = before?.status?.storedVersions ?? []
  const old = before?.status?.conditions
  const accepted: ConditionUpdate = conflict
    ? { type: 'NamesAccepted', status: 'False', reason: conflict.reason, message: conflict.message }
    : { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }
  const established: ConditionUpdate = conflict
    ? { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' }
    : { type: 'Established', status: 'True', reason: 'InitialNamesAccepted', message: 'the initial names have been accepted' }
  return {
    ...before?.status,
    conditions: setCondition(setCondition(old, accepted, nowMs), established, nowMs),
    acceptedNames: acceptedNames(names, before?.status?.acceptedNames, conflict?.fields ?? []),
    storedVersions: storage && !stored.includes(storage) ? [...stored, storage] : stored,
  }
}

/** The storage version is always among those that may be stored, whatever a status says. */
export function ensureStorageVersion(object: KubeObject): void {
  const { spec, status } = object as Crd
  if (!status || typeof status !== 'object' || !Array.isArray(status.storedVersions ?? []) || status.storedVersions?.length) return
  object.status = { ...status, storedVersions: spec.versions.filter(({ storage }) => storage).map(({ name }) => name) }
}

/** Each name that is free is accepted, also beside one that is not; that one stays what it was. */
function acceptedNames(wanted: CrdNames, before: CrdNames = { plural: '', kind: '' }, taken: readonly (keyof CrdNames)[]): CrdNames {
  const accepted = { ...wanted }
  for (const field of taken) {
    delete accepted[field]
    Object.assign(accepted, before[field] === undefined ? {} : { [field]: before[field] })
  }
  return accepted
}

/** A definition on its way out, as the answer to its deletion shows it; its objects go next. */
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
