import type { KubeObject } from '../../object/index.ts'

/** Read access to other objects, for the strategies of kinds. */
export type ObjectReader = {
  /** An object by its table, such as `services`, and its key: `namespace/name` or the name. Includes writes that are not yet durable. */
  get(storageName: string, key: string): KubeObject | undefined
  /** Every object of a table. Includes writes that are not yet durable. */
  all(storageName: string): Iterable<KubeObject>
  /** The durable objects of a table in one namespace. */
  inNamespace(storageName: string, namespace: string): Iterable<KubeObject>
}
