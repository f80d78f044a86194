import type { MergedPart } from './decide-route.ts'

/** The query of a list or watch in one partition: without the namespaces that are not part of it there. */
export function partQuery(query: URLSearchParams, { excludedNamespaces }: MergedPart, table: string): URLSearchParams {
  const own = new URLSearchParams(query)
  if (excludedNamespaces.length === 0) return own
  const field = table === 'namespaces' ? 'metadata.name' : 'metadata.namespace'
  const selectors = [query.get('fieldSelector'), ...excludedNamespaces.map(namespace => `${field}!=${namespace}`)]
  own.set('fieldSelector', selectors.filter(Boolean).join(','))
  return own
}

/** Which version of a list is wanted, and how it is read. The rules are those of `ValidateListOptions` of Kubernetes, which the partitions check. */
export type ListVersion =
  /** The newest one. */
  | { readonly kind: 'newest' }
  | { readonly kind: 'atLeast'; readonly version: number }
  | { readonly kind: 'exact'; readonly version: number }

export function listVersionOf(query: URLSearchParams): ListVersion {
  const version = Number(query.get('resourceVersion') ?? 0)
  const match = query.get('resourceVersionMatch') ?? ''
  // What is no number is rejected by the partitions, in the words of Kubernetes.
  if (!Number.isSafeInteger(version) || version <= 0) return { kind: 'newest' }
  const isExact = match === 'Exact' || (match === '' && Number(query.get('limit') ?? 0) > 0)
  return isExact ? { kind: 'exact', version } : { kind: 'atLeast', version }
}
