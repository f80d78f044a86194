import { isJsonObject, type Json, type KubeObject, parseApiVersion } from '../../../kubernetes/object/index.ts'

/** One object that the Stack applied. `apiVersion` is how to ask for it; the identity is group, kind, namespace and name. */
export type InventoryEntry = { apiVersion: string; kind: string; namespace?: string; name: string; uid: string }

/** The identity of an object: its version may change, the rest not. */
export function inventoryKey(entry: { apiVersion: string; kind: string; namespace?: string; name: string }): string {
  return [parseApiVersion(entry.apiVersion).group, entry.kind, entry.namespace ?? '', entry.name].join('\n')
}

export function inventoryEntry({ apiVersion, kind, metadata }: KubeObject): InventoryEntry {
  const { name, namespace, uid } = metadata
  return { apiVersion, kind, ...(namespace && { namespace }), name, uid }
}

/** `ConfigMap shop/web`, for messages. */
export function formatEntry({ kind, namespace, name }: { kind: string; namespace?: string; name: string }): string {
  return `${kind} ${namespace ? `${namespace}/` : ''}${name}`
}

/** Reads the record of the Stack; anything else than what {@link serializeInventory} made is an empty one. */
export function parseInventory(value: Json | undefined): InventoryEntry[] {
  if (!isJsonObject(value) || value.engine !== 'manifests' || !Array.isArray(value.objects)) return []
  return value.objects.filter(isEntry)
}

export function serializeInventory(entries: readonly InventoryEntry[]): Json {
  return { engine: 'manifests', objects: entries.map(entry => ({ ...entry })) }
}

function isEntry(value: unknown): value is InventoryEntry {
  if (!isJsonObject(value)) return false
  return [value.apiVersion, value.kind, value.name, value.uid].every(field => typeof field === 'string')
}
