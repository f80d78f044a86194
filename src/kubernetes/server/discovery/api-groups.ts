import { hash } from 'node:crypto'
import { type Kind, type Registry, scaleKindFor, tokenRequestKind } from '../registry/index.ts'
import { sortedGroups } from './group-order.ts'

type ApiResource = {
  name: string
  singularName: string
  namespaced: boolean
  group?: string
  version?: string
  kind: string
  verbs: readonly string[]
  shortNames?: readonly string[]
  categories?: readonly string[]
  storageVersionHash?: string
}

const subresourceVerbs = ['get', 'patch', 'update']

function subresourcesOf(kind: Kind): string[] {
  const isNamespace = kind.plural === 'namespaces' && kind.group === ''
  const names = [
    ...(isNamespace ? ['finalize'] : []),
    ...(kind.scale ? ['scale'] : []),
    ...(kind.hasStatus ? ['status'] : []),
    ...(kind.storageName === 'serviceaccounts' ? ['token'] : []),
  ]
  return kind.isCustom ? names.reverse() : names
}

function verbsOfSubresource(subresource: string): readonly string[] {
  return subresource === 'finalize' ? ['update'] : subresource === 'token' ? ['create'] : subresourceVerbs
}

/** The kind of a subresource; undefined if it is the kind of its resource. */
function kindOfSubresource(kind: Kind, subresource: string): Kind | undefined {
  return subresource === 'scale' ? scaleKindFor(kind) : subresource === 'token' ? tokenRequestKind : undefined
}

function sortedByPlural(kinds: Iterable<Kind>): Kind[] {
  return [...kinds].sort((a, b) => (a.plural < b.plural ? -1 : 1))
}

// Kubernetes sorts the verbs of its own kinds; those of custom kinds have a fixed order.
function verbsOf(kind: Kind): readonly string[] {
  return kind.isCustom ? customVerbs.filter(verb => kind.verbs.includes(verb)) : kind.verbs
}

const customVerbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'] as const

/** For its own kinds Kubernetes leaves group and version empty: they are those of the document. */
function responseKind({ group, version, kind, isCustom }: Kind, isOther = isCustom) {
  return isOther ? { group, version, kind } : { group: '', version: '', kind }
}

/** Changes when the storage version of a resource changes. */
function storageVersionHash({ group, version, kind }: Kind): string {
  return hash('sha256', `${group}/${version}/${kind}`, 'buffer').subarray(0, 8).toString('base64')
}

/** `/api/v1` and `/apis/GROUP/VERSION`. */
export function resourceList(groupVersion: string, kinds: Iterable<Kind>): object {
  const resources: ApiResource[] = []
  for (const kind of sortedByPlural(kinds)) {
    const { plural, singular, namespaced, shortNames, categories } = kind
    resources.push({
      name: plural,
      singularName: singular,
      namespaced,
      kind: kind.kind,
      verbs: verbsOf(kind),
      ...(shortNames.length > 0 && { shortNames }),
      ...(categories.length > 0 && { categories }),
      ...(!kind.isVirtual && { storageVersionHash: storageVersionHash(kind) }),
    })
    for (const subresource of subresourcesOf(kind)) {
      const verbs = verbsOfSubresource(subresource)
      const other = kindOfSubresource(kind, subresource)
      const shown = other ? { group: other.group, version: other.version, kind: other.kind } : { kind: kind.kind }
      resources.push({ name: `${plural}/${subresource}`, singularName: '', namespaced, ...shown, verbs })
    }
  }
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources }
}

/** `/apis`, without the core group. */
export function groupList(registry: Registry): object {
  const groups = sortedGroups(registry)
    .filter(([group]) => group !== '')
    .map(([group, versions]) => apiGroup(group, [...versions.keys()]))
  return { kind: 'APIGroupList', apiVersion: 'v1', groups }
}

/** `/apis/GROUP`. */
export function groupDocument(group: string, versions: string[]): object {
  return { kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(group, versions) }
}

function apiGroup(group: string, versions: string[]) {
  const all = versions.map(version => ({ groupVersion: `${group}/${version}`, version }))
  return { name: group, versions: all, preferredVersion: all[0] }
}

/** `apidiscovery.k8s.io/v2`: several groups in one document. */
export function aggregatedDiscovery(registry: Registry, isCore: boolean): object {
  const items = sortedGroups(registry)
    .filter(([group]) => (group === '') === isCore)
    .map(([group, versions]) => ({
      metadata: group === '' ? {} : { name: group },
      versions: [...versions].map(([version, kinds]) => ({
        version,
        resources: sortedByPlural(kinds.values()).map(kind => ({
          resource: kind.plural,
          responseKind: responseKind(kind),
          scope: kind.namespaced ? 'Namespaced' : 'Cluster',
          singularResource: kind.singular,
          verbs: verbsOf(kind),
          ...(kind.shortNames.length > 0 && { shortNames: kind.shortNames }),
          ...(kind.categories.length > 0 && { categories: kind.categories }),
          ...(subresourcesOf(kind).length > 0 && {
            subresources: subresourcesOf(kind).map(subresource => ({
              subresource,
              responseKind: responseKind(
                kindOfSubresource(kind, subresource) ?? kind,
                kindOfSubresource(kind, subresource) !== undefined || kind.isCustom,
              ),
              verbs: verbsOfSubresource(subresource),
            })),
          }),
        })),
        freshness: 'Current',
      })),
    }))
  return { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items }
}
