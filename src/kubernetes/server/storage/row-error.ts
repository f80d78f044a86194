import type { KubeObject } from '../../object/index.ts'
import type { Row } from './protocol.ts'

/** Why a stored row is none that this server wrote; undefined when it is sound. `object` is its parsed text. */
export function rowError([id, resource, key, revision]: Row, object: KubeObject): string | undefined {
  // A start asks this for every object: nothing is made that a sound one does not need.
  const at = () => `${resource} ${key} (row ${id})`
  // What the types promise is what is checked here.
  const metadata = (object as Partial<KubeObject> | null)?.metadata
  if (typeof metadata !== 'object' || metadata === null) return `${at()} has no metadata`
  const { name, namespace, uid, resourceVersion } = metadata
  if (typeof name !== 'string' || typeof uid !== 'string') return `${at()} has no name or uid`
  if (!isKeyOf(key, namespace, name)) return `${at()} holds the object of another key`
  if (Number(resourceVersion) !== revision) return `${at()} has revision ${revision} beside resourceVersion ${resourceVersion}`
  return undefined
}

function isKeyOf(key: string, namespace: string | undefined, name: string): boolean {
  if (!namespace) return key === name
  return (
    key.length === namespace.length + 1 + name.length && key.startsWith(namespace) && key.endsWith(name) && key[namespace.length] === '/'
  )
}
