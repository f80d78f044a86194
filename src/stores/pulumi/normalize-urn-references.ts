import type { Deployment, Resource } from './deployment.ts'
import { formatUrn, parseUrn, typeOf } from './urn.ts'

const rootStackType = 'pulumi:pulumi:Stack'
const delimiter = '::'

/**
 * Rewrites references to former URNs of resources (`aliases`) to their URNs, and removes the aliases. The engine renames a resource before it has
 * visited the ones that refer to it, which may be never if it is killed. A child of a renamed parent is renamed with it, since its URN contains
 * the parent's type. Returns why that is impossible: two resources with the same alias.
 */
export function normalizeUrnReferences(deployment: Deployment): Deployment | string {
  const renamed = new Map<string, string>()
  for (const { urn, aliases, parent = '' } of deployment.resources ?? []) {
    for (const alias of aliases ?? []) {
      const other = renamed.get(alias)
      if (other !== undefined && other !== urn) return `${other} and ${urn} have the same alias ${alias}`
      renamed.set(alias, urn)
    }
    const newParent = renamed.get(parent)
    const parentType = newParent === undefined ? '' : qualifiedType(newParent)
    if (parentType !== '' && parentType !== rootStackType) renamed.set(urn, withParentType(urn, parentType))
  }
  const hasAliases = (deployment.resources ?? []).some(({ aliases }) => aliases !== undefined)
  if (renamed.size === 0 && !hasAliases) return deployment
  const rename = (urn: string) => renamed.get(urn) ?? urn
  return {
    ...deployment,
    ...(deployment.resources && { resources: deployment.resources.map(resource => withReferences(resource, rename)) }),
    ...(deployment.snippets && {
      snippets: deployment.snippets.map(snippet => ({
        ...snippet,
        ...(snippet.references && {
          references: Object.fromEntries(Object.entries(snippet.references).map(([name, urn]) => [name, rename(urn)])),
        }),
      })),
    }),
  }
}

function withReferences({ aliases: _, ...resource }: Resource, rename: (urn: string) => string): Resource {
  const { urn, parent, provider, dependencies, propertyDependencies, deletedWith, viewOf } = resource
  return {
    ...resource,
    urn: rename(urn),
    ...(parent && { parent: rename(parent) }),
    ...(provider && { provider: renameProvider(provider, rename) }),
    ...(dependencies && { dependencies: dependencies.map(rename) }),
    ...(propertyDependencies && {
      propertyDependencies: Object.fromEntries(
        Object.entries(propertyDependencies).map(([name, urns]) => [name, urns === null ? urns : urns.map(rename)]),
      ),
    }),
    ...(deletedWith && { deletedWith: rename(deletedWith) }),
    ...(viewOf && { viewOf: rename(viewOf) }),
  }
}

/** A reference to a provider is its URN, `::`, and its id, which has no `::`. */
function renameProvider(reference: string, rename: (urn: string) => string): string {
  const end = reference.lastIndexOf(delimiter)
  return end === -1 ? reference : rename(reference.slice(0, end)) + reference.slice(end)
}

const qualifiedType = (urn: string): string => parseUrn(urn).qualifiedType

function withParentType(urn: string, parentType: string): string {
  return formatUrn({ ...parseUrn(urn), qualifiedType: `${parentType}$${typeOf(urn)}` })
}
