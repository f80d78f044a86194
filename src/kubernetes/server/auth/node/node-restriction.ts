import { equalJson, isJsonObject, type KubeObject } from '../../../object/index.ts'
import { parseEntry, type Store } from '../../storage/index.ts'
import type { AdmissionPlugin, DeletionPlugin } from '../user.ts'
import { BoundPods } from './bound-pods.ts'
import { nodeLeaseNamespace } from './node-authorizer.ts'
import { nodeNameOf } from './node-user.ts'
import { isMirrorPod, podReferences } from './pod-references.ts'

/** Labels of Kubernetes' domains that a kubelet may set on its Node; other Pods are placed by them. */
const ownLabels = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/arch',
  'kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.kubernetes.io/region',
  'failure-domain.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
])

/**
 * What a kubelet may write, as Kubernetes' admission plugin NodeRestriction: only into its own Node, Lease and CSINode and into the Pods bound
 * to it, no labels that attract other Pods, and tokens only for the Pods that it runs.
 */
export function nodeRestriction(store: Store): {
  admission: ReadonlyMap<string, AdmissionPlugin>
  deletion: ReadonlyMap<string, DeletionPlugin>
} {
  const pods = new BoundPods(store)
  const forNodes =
    (decide: (node: string, ...request: Parameters<AdmissionPlugin>) => string | undefined): AdmissionPlugin =>
    (request, object, oldObject) => {
      const node = nodeNameOf(request.user)
      return node === undefined ? undefined : decide(node, request, object, oldObject)
    }
  const ownName = forNodes((node, _, { metadata: { name } }) =>
    name === node ? undefined : `node ${JSON.stringify(node)} is not allowed to modify an object of another node`,
  )
  const admission = new Map<string, AdmissionPlugin>([
    ['nodes', forNodes((node, _, object, oldObject) => nodeError(node, object, oldObject))],
    [
      'pods',
      forNodes((node, { subresource }, pod, oldPod) => {
        if (oldPod === undefined && subresource === '') return mirrorPodError(node, pod, store)
        return nodeOf(pod) === node ? undefined : `node ${JSON.stringify(node)} can only change pods with spec.nodeName set to itself`
      }),
    ],
    [
      'leases.coordination.k8s.io',
      forNodes((node, _, { metadata: { name, namespace } }) =>
        name === node && namespace === nodeLeaseNamespace
          ? undefined
          : `node ${JSON.stringify(node)} can only use the lease of its own name in namespace ${nodeLeaseNamespace}`,
      ),
    ],
    ['csinodes.storage.k8s.io', ownName],
    [
      'serviceaccounts',
      forNodes((node, { namespace, subresource }, request) =>
        subresource === 'token' ? tokenError(node, namespace, request, pods, store) : undefined,
      ),
    ],
  ])
  const deletion = new Map<string, DeletionPlugin>([
    [
      'pods',
      ({ user }, pod) => {
        const node = nodeNameOf(user)
        if (node === undefined || nodeOf(pod) === node) return undefined
        return `node ${JSON.stringify(node)} can only delete pods with spec.nodeName set to itself`
      },
    ],
  ])
  return { admission, deletion }
}

function nodeError(node: string, object: KubeObject, oldNode: KubeObject | undefined): string | undefined {
  const { name, ownerReferences } = object.metadata
  if (name !== node) return `node ${JSON.stringify(node)} is not allowed to modify node ${JSON.stringify(name)}`
  if (!equalJson(ownerReferences ?? [], oldNode?.metadata.ownerReferences ?? []))
    return `node ${JSON.stringify(node)} is not allowed to modify ownerReferences`
  const [{ taints }, { taints: oldTaints }] = [fields(object.spec), fields(oldNode?.spec)]
  if (oldNode && !equalJson(taints ?? [], oldTaints ?? [])) return `node ${JSON.stringify(node)} is not allowed to modify taints`
  const [labels, oldLabels] = [object.metadata.labels ?? {}, oldNode?.metadata.labels ?? {}]
  const changed = [...new Set([...Object.keys(labels), ...Object.keys(oldLabels)])].filter(key => labels[key] !== oldLabels[key])
  const rejected = changed.filter(key => !mayLabel(key)).sort()
  return rejected.length > 0 ? `node ${JSON.stringify(node)} is not allowed to set or change the labels ${rejected.join(', ')}` : undefined
}

function mayLabel(key: string): boolean {
  const domain = key.includes('/') ? key.slice(0, key.indexOf('/')) : ''
  if (domain === 'node-restriction.kubernetes.io' || domain.endsWith('.node-restriction.kubernetes.io')) return false
  const isKubernetes = ['kubernetes.io', 'k8s.io'].some(suffix => domain === suffix || domain.endsWith(`.${suffix}`))
  const isOwn = ['kubelet.kubernetes.io', 'node.kubernetes.io'].some(suffix => domain === suffix || domain.endsWith(`.${suffix}`))
  return !isKubernetes || isOwn || ownLabels.has(key)
}

function mirrorPodError(node: string, pod: KubeObject, store: Store): string | undefined {
  if (!isMirrorPod(pod))
    return `pod does not have "kubernetes.io/config.mirror" annotation, node ${JSON.stringify(node)} can only create mirror pods`
  if (nodeOf(pod) !== node) return `node ${JSON.stringify(node)} can only create pods with spec.nodeName set to itself`
  const owners = pod.metadata.ownerReferences ?? []
  const [owner] = owners
  const uid = store.table('nodes').get(node)?.uid
  if (
    owners.length !== 1 ||
    owner?.apiVersion !== 'v1' ||
    owner.kind !== 'Node' ||
    owner.name !== node ||
    owner.uid !== uid ||
    !owner.controller
  )
    return `node ${JSON.stringify(node)} can only create pods with an owner reference set to itself`
  const { secrets, configMaps, claims, serviceAccount, tokenAudiences } = podReferences(pod)
  if (serviceAccount !== '') return `node ${JSON.stringify(node)} can not create pods that reference a service account`
  const isFree = secrets.size + configMaps.size + claims.size + tokenAudiences.size === 0
  return isFree ? undefined : `node ${JSON.stringify(node)} can not create pods that reference secrets, configmaps, claims or tokens`
}

function tokenError(node: string, namespace: string, { spec }: KubeObject, pods: BoundPods, store: Store): string | undefined {
  const { boundObjectRef, audiences } = fields(spec)
  const { apiVersion, kind, name, uid } = fields(boundObjectRef)
  if (apiVersion !== 'v1' || kind !== 'Pod' || typeof name !== 'string' || typeof uid !== 'string' || uid === '')
    return 'node requested a token that is not bound to a pod with its name and uid'
  const found = pods.find(node, namespace, name)
  if (!found || found.pod.metadata.uid !== uid) return 'node requested a token bound to a pod that is scheduled on a different node'
  // A token without an audience is for this server, as that of a volume without one.
  const wanted = Array.isArray(audiences) && audiences.length > 0 ? audiences.map(String) : ['']
  const allowed = new Set([...found.references.tokenAudiences, ...driverAudiences(store)])
  const foreign = wanted.find(audience => !allowed.has(audience))
  return foreign === undefined ? undefined : `no volume of pod ${name} has a token with the audience ${JSON.stringify(foreign)}`
}

function driverAudiences(store: Store): string[] {
  return [...store.table('csidrivers.storage.k8s.io').values()].flatMap(entry => {
    const { tokenRequests } = fields(parseEntry(entry).spec)
    return Array.isArray(tokenRequests) ? tokenRequests.map(request => String(fields(request).audience ?? '')) : []
  })
}

const nodeOf = ({ spec }: KubeObject): unknown => fields(spec).nodeName
const fields = (value: unknown): Record<string, unknown> => (isJsonObject(value) ? value : {})
