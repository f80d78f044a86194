import type { KubeObject } from '../../object/index.ts'
import type { Row } from './protocol.ts'

/** Why a stored row cannot be one that this server wrote; undefined when it is valid. `object` is its parsed text. */
export function rowError([id, resource, key, revision]: Row, object: KubeObject): string | undefined {
  // Called for every object at startup: the text is built only for an invalid row.
  const at = () => `${resource} ${key} (row ${id})`
  // The types claim what this function checks.
  const metadata = (object as Partial<KubeObject> | null)?.metadata
  if (typeof metadata !== 'object' || metadata === null) return `${at()} has no metadata`
  const { name, namespace, uid, resourceVersion } = metadata
  if (typeof name !== 'string' || typeof uid !== 'string') return `${at()} has no name or uid`
  if (!isKeyOf(key, namespace, name)) return `${at()} contains the object of another key`
  if (Number(resourceVersion) !== revision) return `${at()} has revision ${revision} but resourceVersion ${resourceVersion}`
  return undefined
}

function isKeyOf(key: string, namespace: string | undefined, name: string): boolean {
  if (!namespace) return key === name
  return (
    key.length === namespace.length + 1 + name.length && key.startsWith(namespace) && key.endsWith(name) && key[namespace.length] === '/'
  )
}
