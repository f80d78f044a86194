import type { Resource } from '../object/index.ts'

const marked = new WeakMap<Resource<unknown>, Resource<object>>()
const partial = new WeakSet<Resource<unknown>>()

/**
 * The same kind, read as metadata alone (Kubernetes' PartialObjectMetadata): names, labels, owners and versions of Pods or
 * Secrets cost a fraction of the whole objects on the wire and in a cache. Reads, lists and watches of it bring no spec and
 * no status; answers of writes are whole objects. Each call with one kind returns the same.
 */
export function metadataOnly(resource: Resource<unknown>): Resource<object> {
  let reduced = marked.get(resource)
  if (!reduced) {
    const { group, version, kind, plural, scope, apiVersion } = resource
    reduced = { group, version, kind, plural, scope, apiVersion }
    marked.set(resource, reduced)
    partial.add(reduced)
  }
  return reduced
}

/** Whether a kind is one that {@link metadataOnly} made. */
export function isMetadataOnly(resource: Resource<unknown>): boolean {
  return partial.has(resource)
}

/** What is asked for; a server that does not know the form may send whole objects. */
export const metadataObjectType = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'
export const metadataListType = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json'
