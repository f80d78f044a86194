/** A reference to an owner of an object: the garbage collector deletes the object after its last owner. */
export type OwnerReference = {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean | undefined
  blockOwnerDeletion?: boolean | undefined
}

/** The fields of one manager, as recorded by server-side apply. */
export type ManagedFieldsEntry = {
  manager: string
  operation: 'Apply' | 'Update'
  apiVersion: string
  time?: string | undefined
  fieldsType: 'FieldsV1'
  fieldsV1: JsonObject
  subresource?: string | undefined
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

/** Metadata of every object. Times are RFC 3339 strings; `resourceVersion` is opaque to clients. */
export type ObjectMeta = {
  name: string
  generateName?: string | undefined
  namespace?: string | undefined
  uid: string
  resourceVersion: string
  generation?: number | undefined
  creationTimestamp: string
  deletionTimestamp?: string | undefined
  deletionGracePeriodSeconds?: number | undefined
  labels?: Record<string, string> | undefined
  annotations?: Record<string, string> | undefined
  finalizers?: string[] | undefined
  ownerReferences?: OwnerReference[] | undefined
  managedFields?: ManagedFieldsEntry[] | undefined
}

/** An object as a server returns it. `Body` is its fields other than apiVersion, kind and metadata. */
export type KubeObject<Body = { [field: string]: unknown }> = Body & {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
}

/** An object as a client sends it: the server adds the rest of the metadata. */
export type NewObject<Body = { [field: string]: unknown }> = Body & {
  apiVersion?: string
  kind?: string
  metadata: Partial<ObjectMeta>
}

export type ListMeta = { resourceVersion: string; continue?: string; remainingItemCount?: number }

export type KubeList<T = KubeObject> = { apiVersion: string; kind: string; metadata: ListMeta; items: T[] }

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
export type WatchEvent<T = KubeObject> = { type: WatchEventType; object: T }

/** `namespace/name`, or `name` for a cluster-scoped object: the key of caches and work queues. */
export function objectKey(object: { metadata: { name?: string | undefined; namespace?: string | undefined } }): string {
  const { namespace, name } = object.metadata
  return namespace ? `${namespace}/${name}` : `${name}`
}

/** The inverse of {@link objectKey}. */
export function parseKey(key: string): { namespace: string | undefined; name: string } {
  const slash = key.indexOf('/')
  return slash < 0 ? { namespace: undefined, name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

/** Splits `apps/v1` into group `apps` and version `v1`; the core group is the empty string. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? { group: '', version: apiVersion } : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) }
}

/** An owner reference to `owner`, marked as its managing controller. */
export function controllerReference(owner: KubeObject<unknown>): OwnerReference {
  const { apiVersion, kind, metadata } = owner
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true, blockOwnerDeletion: true }
}
