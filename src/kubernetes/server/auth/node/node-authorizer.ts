import { parseFieldSelector } from '../../../object/index.ts'
import { parseEntry, type Store } from '../../storage/index.ts'
import type { Attributes } from '../user.ts'
import { BoundPods } from './bound-pods.ts'
import { nodeNameOf } from './node-user.ts'

export const nodeLeaseNamespace = 'kube-node-lease'

const reads = ['get', 'list', 'watch']
const upserts = ['create', 'update', 'patch']

/**
 * The rights of a kubelet, as those of Kubernetes' Node authorizer: its own Node, Lease and CSINode, the Pods that are bound to it, and what
 * these Pods refer to. What it may write into them is decided by `node-restriction.ts`, which knows the objects.
 */
export class NodeAuthorizer {
  readonly #pods: BoundPods
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
    this.#pods = new BoundPods(store)
  }

  /** True if the user is a kubelet with this right; false leaves the decision to RBAC. */
  allows(attributes: Attributes): boolean {
    const node = nodeNameOf(attributes.user)
    return node !== undefined && attributes.resource !== '' && this.#allowsNode(node, attributes)
  }

  #allowsNode(node: string, attributes: Attributes): boolean {
    const { verb, group, resource, subresource = '', namespace = '', name = '' } = attributes
    const what = `${group === '' ? '' : `${group}/`}${resource}${subresource === '' ? '' : `/${subresource}`}`
    const isRead = reads.includes(verb)
    switch (what) {
      case 'nodes':
        return verb === 'create' || (name === node && (isRead || upserts.includes(verb)))
      case 'nodes/status':
        return name === node && ['update', 'patch'].includes(verb)
      case 'pods':
        if (verb === 'get') return this.#pods.find(node, namespace, name) !== undefined
        if (verb === 'list' || verb === 'watch') return selects(attributes.fieldSelector, 'spec.nodeName', node)
        return verb === 'create' || (verb === 'delete' && name !== '')
      case 'pods/status':
        return ['update', 'patch'].includes(verb)
      case 'pods/eviction':
        return verb === 'create'
      case 'secrets':
        return isRead && this.#needsSecret(node, namespace, name)
      case 'configmaps':
        return isRead && name !== '' && this.#pods.refers(node, namespace, ({ configMaps }) => configMaps.has(name))
      case 'persistentvolumeclaims':
        return verb === 'get' && this.#pods.refers(node, namespace, ({ claims }) => claims.has(name))
      case 'persistentvolumes':
        return verb === 'get' && this.#pods.usesVolume(node, name)
      case 'serviceaccounts':
        return verb === 'get' && this.#usesAccount(node, namespace, name)
      case 'serviceaccounts/token':
        return verb === 'create' && this.#usesAccount(node, namespace, name)
      case 'services':
      case 'storage.k8s.io/csidrivers':
      case 'node.k8s.io/runtimeclasses':
        return isRead
      case 'storage.k8s.io/csinodes':
        return verb === 'create' || (name === node && ['get', 'update', 'patch', 'delete'].includes(verb))
      case 'storage.k8s.io/volumeattachments':
        return verb === 'get' && this.#isAttachedTo(node, name)
      case 'coordination.k8s.io/leases':
        if (namespace !== nodeLeaseNamespace) return false
        return verb === 'create' || (name === node && ['get', 'update', 'patch', 'delete'].includes(verb))
      case 'events':
      case 'events.k8s.io/events':
        return upserts.includes(verb)
      // With these a kubelet authenticates and authorizes its own clients.
      case 'authentication.k8s.io/tokenreviews':
      case 'authorization.k8s.io/subjectaccessreviews':
        return verb === 'create'
      default:
        return false
    }
  }

  #needsSecret(node: string, namespace: string, name: string): boolean {
    if (name === '') return false
    return this.#pods.refers(node, namespace, ({ secrets }) => secrets.has(name)) || this.#pods.volumeNeedsSecret(node, namespace, name)
  }

  #usesAccount(node: string, namespace: string, name: string): boolean {
    return name !== '' && this.#pods.refers(node, namespace, ({ serviceAccount }) => serviceAccount === name)
  }

  #isAttachedTo(node: string, name: string): boolean {
    const entry = this.#store.table('volumeattachments.storage.k8s.io').get(name)
    return entry !== undefined && (parseEntry(entry).spec as { nodeName?: string } | undefined)?.nodeName === node
  }
}

function selects(selector: string | undefined, field: string, value: string): boolean {
  if (selector === undefined) return false
  try {
    return parseFieldSelector(selector).requirements.some(term => term.field === field && term.operator === '=' && term.value === value)
  } catch {
    // The verb parses the selector again and reports the error.
    return false
  }
}
