import { notFound, StatusError } from '../../object/index.ts'
import { readBoolean } from '../../object/route.ts'
import { type Kind, subresourcesOf, type Verb } from '../registry/index.ts'
import { methodNotAllowed, type Services, type Target } from '../rest/index.ts'
import type { Reply, Representation } from '../wire/index.ts'
import type { ResourceRequest } from './handler-options.ts'
import { isBuiltInGroup, NoSuchPath, noSuchResource } from './not-served.ts'

/**
 * Finds the kind, verb and subresource of an authorized request, in the order in which kube-apiserver checks them. Adds the
 * deprecation warning of the kind to the response.
 * @throws {StatusError} NotFound or MethodNotAllowed.
 */
export function resolveTarget(services: Services, { route, query, request }: ResourceRequest, response: Reply): Target | NoSuchPath {
  const { group, version, plural, namespace, name, subresource } = route
  const method = request.method ?? 'GET'
  const verb = verbOf(method, name, subresource, query)
  const kind = services.registry.find(group, version, plural)
  if (!kind) {
    // kube-apiserver responds so for groups that it does not have built in.
    if (!isBuiltInGroup(services, group) && !services.registry.groups.get(group)?.has(version)) return new NoSuchPath()
    throw noSuchResource()
  }
  if (kind.isVirtual && name) throw noSuchResource()
  // kube-apiserver serves HEAD for custom resources only.
  if (method === 'HEAD' && !kind.isCustom) throw methodNotAllowed()
  if (kind.namespaced !== (namespace !== '')) checkAllNamespaces(kind, name, verb)
  if (verb && !kind.verbs.includes(verb)) throw methodNotAllowed()
  if (kind.deprecationWarning) response.appendHeader('Warning', `299 - ${JSON.stringify(kind.deprecationWarning)}`)
  const found = subresource === '' ? undefined : subresourcesOf(kind).find(each => each.name === subresource)
  if (subresource && !found) throw kind.isCustom ? notFound(kind, name) : noSuchResource()
  if (!verb && kind.isCustom) throw methodNotSupported(kind)
  if (!verb || (found && !found.verbs.includes(verb))) throw methodNotAllowed()
  const table = services.store.table(kind.storageName)
  return { verb, kind, table, namespace, name, subresource: subresource as Target['subresource'] }
}

/** A namespaced kind without a namespace can only be listed and watched; a cluster-scoped kind has no namespaces. */
function checkAllNamespaces(kind: Kind, name: string, verb: Verb | undefined): void {
  if (kind.isVirtual || !kind.namespaced || name !== '') throw noSuchResource()
  if (verb !== 'list' && verb !== 'watch') throw methodNotAllowed()
}

function verbOf(method: string, name: string, subresource: string, query: URLSearchParams | undefined): Verb | undefined {
  switch (method) {
    case 'HEAD':
      return name ? 'get' : 'list'
    case 'GET':
      if (name) return 'get'
      return query !== undefined && readBoolean(query, 'watch') ? 'watch' : 'list'
    case 'POST':
      return name && !subresource ? undefined : 'create'
    case 'PUT':
      return name ? 'update' : undefined
    case 'PATCH':
      return name ? 'patch' : undefined
    case 'DELETE':
      return name ? 'delete' : 'deletecollection'
    default:
      return undefined
  }
}

/** @throws {StatusError} NotAcceptable when the client asks for one object as a list, or for a list as one object. */
export function checkForm({ kind, verb }: Target, { form, isList }: Representation): void {
  if (form !== 'partial' || verb === 'watch' || verb === 'deletecollection' || isList === (verb === 'list')) return
  const type = kind.isCustom ? 'unstructured.Unstructured' : `${kind.group.split('.')[0] || 'core'}.${kind.kind}`
  const what = isList ? `PartialObjectMetadataList, but the requested object is not a list (*${type})` : undefined
  const message = what ?? `PartialObjectMetadata, but the requested object is a list (*${type}List)`
  throw new StatusError('NotAcceptable', `you requested ${message}`)
}

/** kube-apiserver's error for custom resources; it leaves the verb out when the method maps to none. */
function methodNotSupported({ group, plural }: Kind): StatusError {
  return new StatusError('MethodNotAllowed', ` is not supported on resources of kind ${JSON.stringify(`${plural}.${group}`)}`, {
    details: { group, kind: plural },
  })
}
