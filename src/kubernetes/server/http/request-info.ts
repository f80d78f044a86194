import { parseFieldSelector } from '../../object/index.ts'
import { readBoolean } from '../rest/index.ts'

/** The verb that authorization decides on, as in kube-apiserver's RequestInfo; also for requests that are not supported. */
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

/** The name that a list or watch is restricted to by its field selector: a rule with resourceNames can allow it. */
export function selectedName(verb: string, query: URLSearchParams | undefined): string {
  if (query === undefined || (verb !== 'list' && verb !== 'watch')) return ''
  const selector = query.get('fieldSelector')
  if (!selector) return ''
  try {
    const { requirements } = parseFieldSelector(selector)
    const named = requirements.find(({ field, operator }) => field === 'metadata.name' && operator === '=')
    return named && !/[/%]/.test(named.value) ? named.value : ''
  } catch {
    // The verb parses the selector again and reports the error.
    return ''
  }
}
