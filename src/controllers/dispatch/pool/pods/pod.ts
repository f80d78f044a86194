import { describeResource, type JsonObject, type KubeObject } from '../../../../kubernetes/object/index.ts'

export type ContainerState = {
  waiting?: { reason?: string; message?: string }
  running?: { startedAt?: string }
  terminated?: { exitCode: number; reason?: string; message?: string; finishedAt?: string }
}

/** The fields of a Pod that are read here; its spec comes from the pool's template. */
export type PodBody = {
  spec?: JsonObject
  status?: {
    phase?: string
    reason?: string
    message?: string
    conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string | null }[]
    containerStatuses?: { name: string; state?: ContainerState }[]
    initContainerStatuses?: { name: string; state?: ContainerState }[]
  }
}

export type Pod = KubeObject<PodBody>

export const podResource = describeResource<PodBody>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', scope: 'Namespaced' })
