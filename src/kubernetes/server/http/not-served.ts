import { StatusError } from '../../object/index.ts'
import type { Attributes } from '../auth/index.ts'
import type { Services } from '../rest/index.ts'
import { type Reply, send } from '../wire/index.ts'

/** The plain 404 of a path that belongs to no API; see {@link noSuchResource} for those of an API. */
export class NoSuchPath {
  readonly #path: string

  constructor(path = '') {
    this.#path = path
  }

  // kube-apiserver has a handler of its own for OpenAPI v3, whose 404 has no text.
  send(response: Reply): void {
    if (this.#path.startsWith('/openapi/v3/')) send(response, 404, '', '')
    else send(response, 404, 'text/plain; charset=utf-8', '404 page not found\n')
  }
}

export function noSuchResource(): StatusError {
  return new StatusError('NotFound', 'the server could not find the requested resource', { details: {} })
}

/** True for a group of built-in kinds; false for one that only CustomResourceDefinitions have. */
export function isBuiltInGroup({ registry }: Services, group: string): boolean {
  for (const kinds of registry.groups.get(group)?.values() ?? []) for (const kind of kinds.values()) if (!kind.isCustom) return true
  return false
}

/** kube-apiserver's 403 for a resource. */
export function forbidden({ user, verb, group, resource: plural, subresource, namespace, name }: Attributes, reason: string): StatusError {
  const what = (group ? `${plural}.${group}` : plural) + (name ? ` ${JSON.stringify(name)}` : '')
  const resource = subresource ? `${plural}/${subresource}` : plural
  const where = namespace ? `in the namespace ${JSON.stringify(namespace)}` : 'at the cluster scope'
  const because = reason ? `: ${reason}` : ''
  return new StatusError(
    'Forbidden',
    `${what} is forbidden: User ${JSON.stringify(user.name)} cannot ${verb} resource ${JSON.stringify(resource)} in API group ${JSON.stringify(group)} ${where}${because}`,
    { details: { name: name || undefined, group: group || undefined, kind: plural } },
  )
}
