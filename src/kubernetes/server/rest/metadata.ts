import { badRequest, conflict, type KubeObject, type ObjectMeta } from '../../object/index.ts'
import type { Kind } from '../registry/index.ts'

export type NamespacedName = { readonly namespace: string; readonly name: string }

/** The metadata that clients may set freely. */
export function userMetadata({ labels, annotations, ownerReferences, finalizers }: Partial<ObjectMeta>): Partial<ObjectMeta> {
  const meta: Partial<ObjectMeta> = {}
  if (labels) meta.labels = labels
  if (annotations) meta.annotations = annotations
  if (ownerReferences) meta.ownerReferences = ownerReferences
  if (finalizers) meta.finalizers = finalizers
  return meta
}

/** The metadata that updates cannot change. */
export function serverMetadata(before: ObjectMeta): ObjectMeta {
  const { labels: _, annotations: __, ownerReferences: ___, finalizers: ____, managedFields: _____, ...identity } = before
  return identity
}

/** @throws {StatusError} BadRequest when the sent name or namespace differs from the URL's. */
export function checkNamespacedName(kind: Kind, sent: Partial<ObjectMeta>, url: NamespacedName): void {
  if (url.name && sent.name !== undefined && sent.name !== url.name) {
    throw badRequest(`the name of the object (${sent.name}) does not match the name on the URL (${url.name})`)
  }
  if (kind.namespaced && sent.namespace !== undefined && sent.namespace !== url.namespace) {
    throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`)
  }
}

/** @throws {StatusError} Conflict when the sent uid or resourceVersion is not the object's. */
export function checkPreconditions(kind: Kind, { metadata: is }: KubeObject, sent: Partial<ObjectMeta>, isPatched?: boolean): void {
  if (sent.uid && sent.uid !== is.uid && !isPatched) {
    throw conflict(kind, is.name, `Precondition failed: UID in precondition: ${sent.uid}, UID in object meta: ${is.uid}`)
  }
  if (sent.resourceVersion && sent.resourceVersion !== '0' && sent.resourceVersion !== is.resourceVersion) {
    throw conflict(kind, is.name, 'the object has been modified; please apply your changes to the latest version and try again')
  }
}

/** True for an object that is being deleted and waits for nothing: no finalizers, no grace period. */
export function isDeletionComplete(object: KubeObject): boolean {
  const { deletionTimestamp, finalizers, deletionGracePeriodSeconds } = object.metadata
  if (!deletionTimestamp || finalizers?.length || (deletionGracePeriodSeconds ?? 0) > 0) return false
  const spec = object.spec as { finalizers?: string[] } | undefined
  return !(object.kind === 'Namespace' && object.apiVersion === 'v1' && spec?.finalizers?.length)
}
