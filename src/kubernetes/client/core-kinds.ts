import { describeResource, type JsonObject, type Resource } from '../object/index.ts'

/** `data` values are base64; `stringData` is write-only text. */
export type SecretBody = { type?: string; data?: Record<string, string>; stringData?: Record<string, string>; immutable?: boolean }
export type ConfigMapBody = { data?: Record<string, string>; binaryData?: Record<string, string>; immutable?: boolean }
export type NamespaceBody = { spec?: { finalizers?: string[] }; status?: { phase?: 'Active' | 'Terminating' } }

export type ObjectReference = {
  apiVersion?: string
  kind?: string
  namespace?: string
  name?: string
  uid?: string
  resourceVersion?: string
  fieldPath?: string
}

export type EventBody = {
  involvedObject: ObjectReference
  type?: 'Normal' | 'Warning'
  reason?: string
  message?: string
  action?: string
  count?: number
  firstTimestamp?: string
  lastTimestamp?: string
  eventTime?: string | null
  source?: { component?: string; host?: string }
  reportingComponent?: string
  reportingInstance?: string
}

/** Times are `metav1.MicroTime`; {@link https://kubernetes.io/docs/concepts/architecture/leases/}. */
export type LeaseBody = {
  spec?: {
    holderIdentity?: string | null
    leaseDurationSeconds?: number | null
    acquireTime?: string | null
    renewTime?: string | null
    leaseTransitions?: number | null
  }
}

export type CrdBody = {
  spec: JsonObject
  status?: {
    conditions?: { type: string; status: string; reason?: string; message?: string }[]
    acceptedNames?: JsonObject
    storedVersions?: string[]
  }
}

const core = { group: '', version: 'v1' } as const

export const secretResource: Resource<SecretBody> = describeResource({ ...core, kind: 'Secret', plural: 'secrets', scope: 'Namespaced' })
export const configMapResource: Resource<ConfigMapBody> = describeResource({
  ...core,
  kind: 'ConfigMap',
  plural: 'configmaps',
  scope: 'Namespaced',
})
export type SelfAccessReviewBody = { spec: { resourceAttributes: object }; status?: { allowed?: boolean } }
export type ServiceAccountBody = { automountServiceAccountToken?: boolean }
export const serviceAccountResource: Resource<ServiceAccountBody> = describeResource({
  ...core,
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  scope: 'Namespaced',
})
export const eventResource: Resource<EventBody> = describeResource({ ...core, kind: 'Event', plural: 'events', scope: 'Namespaced' })
export const namespaceResource: Resource<NamespaceBody> = describeResource({
  ...core,
  kind: 'Namespace',
  plural: 'namespaces',
  scope: 'Cluster',
})
export const leaseResource: Resource<LeaseBody> = describeResource({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
})
export const crdResource: Resource<CrdBody> = describeResource({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
})
/** Asks the server what the user of the client may do. */
export const selfAccessReviewResource: Resource<SelfAccessReviewBody> = describeResource({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  scope: 'Cluster',
})
