import { parseFieldSelector } from '../../object/index.ts'
import { readBoolean } from '../rest/index.ts'

/**
 * The verb that a request for a resource is allowed or refused by, whether or not it is served, as kube-apiserver's request
 * info has it.
 */
export function authorizationVerb(method: string, name: string, query: URLSearchParams | undefined): string {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (name) return 'get'
      return query !== undefined && readBoolean(query, 'watch') ? 'watch' : 'list'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return name ? 'delete' : 'deletecollection'
    default:
      return method.toLowerCase()
  }
}

/** The name that a list or watch is restricted to: a rule with resourceNames allows it for those. */
export function selectedName(verb: string, query: URLSearchParams | undefined): string {
  if (query === undefined || (verb !== 'list' && verb !== 'watch')) return ''
  const selector = query.get('fieldSelector')
  if (!selector) return ''
  try {
    const { requirements } = parseFieldSelector(selector)
    const named = requirements.find(({ field, operator }) => field === 'metadata.name' && operator === '=')
    return named && !/[/%]/.test(named.value) ? named.value : ''
  } catch {
    // Whoever carries the request out says what is wrong with it.
    return ''
  }
}
