import type { Resource } from '../object/index.ts'

const reducedByResource = new WeakMap<Resource<unknown>, Resource<object>>()
const reducedResources = new WeakSet<Resource<unknown>>()

/**
 * The same kind, read as metadata only (PartialObjectMetadata): names, labels, owners and versions of Pods or Secrets cost a
 * fraction of the whole objects on the wire and in a cache. Its gets, lists and watches have no spec and no status;
 * responses to writes are whole objects. Repeated calls with one kind return the same value.
 */
export function metadataOnly(resource: Resource<unknown>): Resource<object> {
  let reduced = reducedByResource.get(resource)
  if (!reduced) {
    const { group, version, kind, plural, scope, apiVersion } = resource
    reduced = { group, version, kind, plural, scope, apiVersion }
    reducedByResource.set(resource, reduced)
    reducedResources.add(reduced)
  }
  return reduced
}

/** Whether {@link metadataOnly} returned this kind. */
export function isMetadataOnly(resource: Resource<unknown>): boolean {
  return reducedResources.has(resource)
}

/** Accept headers; a server without support may send whole objects. */
export const metadataObjectType = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'
export const metadataListType = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json'
