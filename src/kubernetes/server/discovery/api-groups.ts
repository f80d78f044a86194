import { hash } from 'node:crypto'
import { type Kind, type Registry, type Subresource, scaleKindFor, subresourcesOf } from '../registry/index.ts'
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

function shownSubresources(kind: Kind): Subresource[] {
  return kind.isCustom ? subresourcesOf(kind).reverse() : subresourcesOf(kind)
}

/** The kind of a subresource; undefined if it is the kind of its resource. */
function kindOfSubresource(kind: Kind, { name, kind: other }: Subresource) {
  return name === 'scale' ? scaleKindFor(kind) : other
}

function sortedByPlural(kinds: Iterable<Kind>): Kind[] {
  return [...kinds].sort((a, b) => (a.plural < b.plural ? -1 : 1))
}

// Kubernetes sorts the verbs of its own kinds; those of custom kinds have a fixed order.
function verbsOf(kind: Kind): readonly string[] {
  return kind.isCustom ? customVerbs.filter(verb => kind.verbs.includes(verb)) : kind.verbs
}

const customVerbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'] as const

/** Whether the kind of a subresource is not in the group and version of the document. */
function isOtherGroup(kind: Kind, subresource: Subresource): boolean {
  return kind.isCustom || (kindOfSubresource(kind, subresource)?.group ?? '') !== ''
}

/** For its own kinds Kubernetes leaves group and version empty: they are those of the document. */
function responseKind({ group, version, kind }: Pick<Kind, 'group' | 'version' | 'kind'>, isOther: boolean) {
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
    for (const subresource of shownSubresources(kind)) {
      const { name, verbs } = subresource
      const other = kindOfSubresource(kind, subresource)
      const shown =
        other && other.group !== '' ? { group: other.group, version: other.version, kind: other.kind } : { kind: (other ?? kind).kind }
      resources.push({ name: `${plural}/${name}`, singularName: '', namespaced, ...shown, verbs })
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
          responseKind: responseKind(kind, kind.isCustom),
          scope: kind.namespaced ? 'Namespaced' : 'Cluster',
          singularResource: kind.singular,
          verbs: verbsOf(kind),
          ...(kind.shortNames.length > 0 && { shortNames: kind.shortNames }),
          ...(kind.categories.length > 0 && { categories: kind.categories }),
          ...(shownSubresources(kind).length > 0 && {
            subresources: shownSubresources(kind).map(subresource => ({
              subresource: subresource.name,
              responseKind: responseKind(kindOfSubresource(kind, subresource) ?? kind, isOtherGroup(kind, subresource)),
              verbs: subresource.verbs,
            })),
          }),
        })),
        freshness: 'Current',
      })),
    }))
  return { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items }
}
