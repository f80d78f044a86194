import { ownerAnnotation } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { describeResource, isJsonObject, isReason, parseApiVersion, type Resource } from '../../../kubernetes/object/index.ts'
import { EngineError } from '../engine-error.ts'
import { applyRank } from './apply-order.ts'
import type { Manifest } from './parse-manifests.ts'

/** A manifest with its resource and its namespace. `pendingCrd` is true when a CRD of the same source defines its kind. */
export type ResolvedManifest = Manifest & { resource: Resource; pendingCrd: boolean }

/**
 * Finds the resource of every manifest, in the cluster or in a CRD of the source, sets namespace and owner annotation, and sorts in
 * apply order.
 * @throws {EngineError} naming the object whose kind does not exist.
 */
export async function resolveManifests(
  client: Client,
  manifests: readonly Manifest[],
  namespace: string,
  owner: string,
): Promise<ResolvedManifest[]> {
  const defined = resourcesOfCrds(manifests)
  const resolved = await Promise.all(
    manifests.map(async ({ object, location }): Promise<ResolvedManifest> => {
      const found = await discoverResource(client, object.apiVersion, object.kind)
      const resource = found ?? defined.get(`${object.apiVersion}/${object.kind}`)
      if (!resource) {
        throw new EngineError(
          'PlanFailed',
          `${location}: the cluster has no kind ${object.kind} in apiVersion ${object.apiVersion}; apply its CustomResourceDefinition first, or add it to the source`,
          { retryable: true },
        )
      }
      const { namespace: ownNamespace, ...metadata } = object.metadata
      const annotations = { ...metadata.annotations, [ownerAnnotation]: owner }
      const namespaceField = resource.scope === 'Namespaced' ? { namespace: ownNamespace ?? namespace } : {}
      return {
        object: { ...object, metadata: { ...metadata, ...namespaceField, annotations } },
        location,
        resource,
        pendingCrd: found === undefined,
      }
    }),
  )
  return resolved.sort((a, b) => applyRank(a.object.kind) - applyRank(b.object.kind))
}

/** The resource that the cluster serves for this kind now, or undefined. */
export async function discoverResource(client: Client, apiVersion: string, kind: string): Promise<Resource | undefined> {
  try {
    return await client.discover(apiVersion, kind)
  } catch (error) {
    if (isReason(error, 'NotFound')) return undefined
    throw error
  }
}

function resourcesOfCrds(manifests: readonly Manifest[]): Map<string, Resource> {
  const kinds = new Map<string, Resource>()
  for (const { object } of manifests) {
    if (object.kind !== 'CustomResourceDefinition' || parseApiVersion(object.apiVersion).group !== 'apiextensions.k8s.io') continue
    const spec = isJsonObject(object.spec) ? object.spec : {}
    const names = isJsonObject(spec.names) ? spec.names : {}
    for (const version of Array.isArray(spec.versions) ? spec.versions : []) {
      if (!isJsonObject(version) || typeof version.name !== 'string') continue
      if (typeof spec.group !== 'string' || typeof names.kind !== 'string' || typeof names.plural !== 'string') continue
      const scope = spec.scope === 'Cluster' ? 'Cluster' : 'Namespaced'
      const resource = describeResource<{ [field: string]: unknown }>({
        group: spec.group,
        version: version.name,
        kind: names.kind,
        plural: names.plural,
        scope,
      })
      kinds.set(`${resource.apiVersion}/${resource.kind}`, resource)
    }
  }
  return kinds
}
