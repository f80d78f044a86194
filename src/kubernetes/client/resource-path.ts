import type { ResourceName } from '../object/index.ts'

/** Of an object that no server has: it would change the path of the request. */
export class InvalidNameError extends TypeError {
  override readonly name = 'InvalidNameError'
}

/** Values of query parameters; undefined ones are omitted. */
export type Query = { readonly [name: string]: string | number | boolean | undefined }

/**
 * The path of a collection or of one object: `/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>/<subresource>`.
 * @throws {InvalidNameError} for an empty name, or one that would change the path.
 */
export function resourcePath(resource: ResourceName, namespace: string | undefined, name?: string, subresource?: string): string {
  const { group, version, plural, scope } = resource
  let path = group ? `/apis/${group}/${version}` : `/api/${version}`
  if (scope === 'Namespaced' && namespace) path += `/namespaces/${segment(namespace, 'namespace', resource)}`
  path += `/${plural}`
  if (name !== undefined) path += `/${segment(name, 'name', resource)}`
  if (subresource) path += `/${subresource}`
  return path
}

export function withQuery(path: string, query: Query | undefined): string {
  if (!query) return path
  let text = ''
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) text += `${text === '' ? '' : '&'}${encodeURIComponent(name)}=${encodeURIComponent(value)}`
  }
  if (text === '') return path
  return `${path}${path.includes('?') ? '&' : '?'}${text}`
}

function segment(value: string, field: string, { kind }: ResourceName): string {
  if (value === '' || value === '.' || value === '..' || value.includes('/') || value.includes('%')) {
    throw new InvalidNameError(`${field} of a ${kind} must be a valid object name, got ${JSON.stringify(value)}`)
  }
  return encodeURIComponent(value)
}
