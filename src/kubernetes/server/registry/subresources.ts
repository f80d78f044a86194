import type { Kind, Verb } from './kind.ts'

/** The names of a kind that a subresource reads and writes. */
type SubresourceKind = { readonly group: string; readonly version: string; readonly kind: string }

export type Subresource = {
  readonly name: string
  readonly verbs: readonly Verb[]
  /** Absent if it is the kind of its resource, or depends on it (`scale`). */
  readonly kind?: SubresourceKind
  /** It is served by the kubelet of a Node, not from the store. */
  readonly isProxied?: boolean
}

const readWrite: readonly Verb[] = ['get', 'patch', 'update']
const core = (kind: string): SubresourceKind => ({ group: '', version: 'v1', kind })

/** Subresources of built-in kinds, besides `status` and `scale`, by table. */
const ofTable: Readonly<Record<string, readonly Subresource[]>> = {
  namespaces: [{ name: 'finalize', verbs: ['update'] }],
  serviceaccounts: [{ name: 'token', verbs: ['create'], kind: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' } }],
  pods: [
    { name: 'binding', verbs: ['create'], kind: core('Binding') },
    { name: 'attach', verbs: ['create', 'get'], kind: core('PodAttachOptions'), isProxied: true },
    { name: 'exec', verbs: ['create', 'get'], kind: core('PodExecOptions'), isProxied: true },
    { name: 'log', verbs: ['get'], isProxied: true },
    { name: 'portforward', verbs: ['create', 'get'], kind: core('PodPortForwardOptions'), isProxied: true },
  ],
}

/** The subresources of a kind, by name. */
export function subresourcesOf(kind: Kind): Subresource[] {
  const found = [
    ...(kind.isCustom ? [] : (ofTable[kind.storageName] ?? [])),
    ...(kind.scale ? [{ name: 'scale', verbs: readWrite }] : []),
    ...(kind.hasStatus ? [{ name: 'status', verbs: readWrite }] : []),
  ]
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}
