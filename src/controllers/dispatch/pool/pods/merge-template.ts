import { applyStrategicPatch, type Json, type JsonObject, type StructuralSchema } from '../../../../kubernetes/object/index.ts'

const listBy = (key: string, items: StructuralSchema = { type: 'object' }): StructuralSchema => ({
  type: 'array',
  items,
  'x-kubernetes-patch-strategy': 'merge',
  'x-kubernetes-patch-merge-key': key,
})

const container: StructuralSchema = {
  type: 'object',
  properties: {
    env: listBy('name'),
    ports: listBy('containerPort'),
    volumeMounts: listBy('mountPath'),
    volumeDevices: listBy('devicePath'),
  },
}

/** The lists of a Pod that Kubernetes merges by a key (`patchMergeKey` in k8s.io/api/core/v1); every other list is replaced, such as tolerations. */
const pod: StructuralSchema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        containers: listBy('name', container),
        initContainers: listBy('name', container),
        volumes: listBy('name'),
        imagePullSecrets: listBy('name'),
        hostAliases: listBy('ip'),
        topologySpreadConstraints: listBy('topologyKey'),
        schedulingGates: listBy('name'),
        resourceClaims: listBy('name'),
      },
    },
  },
}

/**
 * Strategic merge of PodSpecs, as `kubectl patch` merges them: an item of a list with a key is merged with that of the same key. `$patch: delete` removes
 * what the base has.
 * @throws {StatusError} BadRequest for an item without its key, or an unknown directive.
 */
export function mergePodSpecs(base: JsonObject, patch: JsonObject): JsonObject {
  const merged = applyStrategicPatch({ spec: base } as Json, { spec: patch } as Json, pod) as { spec?: JsonObject }
  return merged.spec ?? {}
}
