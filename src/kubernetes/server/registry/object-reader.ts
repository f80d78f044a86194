import type { KubeObject } from '../../object/index.ts'

/** What rules of kinds may look up of other objects. */
export type ObjectReader = {
  /** An object by its table, such as `services`, and its key: `namespace/name` or the name. Sees writes on their way to disk. */
  get(storageName: string, key: string): KubeObject | undefined
  /** Every object of a table, writes on their way to disk included. */
  all(storageName: string): Iterable<KubeObject>
  /** The durable objects of a table in one namespace. */
  inNamespace(storageName: string, namespace: string): Iterable<KubeObject>
}
