import type { Resource } from './deployment.ts'

/**
 * Removes references to resources that do not exist any more. A refresh removes resources that others depend on; every other step removes
 * dependents first. A reference is kept if its resource comes before; a parent is kept if it exists.
 */
export function removeDanglingReferences(resources: readonly Resource[]): Resource[] {
  const seen = new Set<string>()
  const all = new Set(resources.map(({ urn }) => urn))
  return resources.map(resource => {
    const { dependencies, propertyDependencies, replaceWith, deletedWith, parent, ...others } = resource
    const existing = (urns: readonly string[]) => urns.filter(urn => seen.has(urn))
    const byProperty = Object.entries(propertyDependencies ?? {}).map(([name, urns]) => [name, existing(urns ?? [])] as const)
    const kept: Resource = {
      ...others,
      ...(parent && all.has(parent) && { parent }),
      ...(dependencies && { dependencies: existing(dependencies) }),
      ...(propertyDependencies && { propertyDependencies: Object.fromEntries(byProperty.filter(([, urns]) => urns.length > 0)) }),
      ...(replaceWith && { replaceWith: existing(replaceWith) }),
      ...(deletedWith && seen.has(deletedWith) && { deletedWith }),
    }
    seen.add(resource.urn)
    return kept
  })
}
