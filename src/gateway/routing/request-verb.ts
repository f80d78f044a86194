import { authorizationVerb } from '../../kubernetes/object/route.ts'
import type { RoutedRequest } from './decide-route.ts'

const verbs: ReadonlySet<string> = new Set<RoutedRequest['verb']>([
  ...(['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'] as const),
])

export function verbOf(method = 'GET', name: string, query: URLSearchParams): RoutedRequest['verb'] {
  const verb = authorizationVerb(method, name, query)
  // Another method is rejected by the partition that would answer a read, in its words.
  return verbs.has(verb) ? (verb as RoutedRequest['verb']) : 'get'
}
