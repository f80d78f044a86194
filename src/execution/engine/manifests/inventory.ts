import { isJsonObject, type Json, type KubeObject, parseApiVersion } from '../../../kubernetes/object/index.ts'
import type { EngineContext } from '../engine.ts'
import { applyRank } from './apply-order.ts'
import type { ResolvedManifest } from './resolve-manifests.ts'

/** An object that the Stack applied. Its identity is group, kind, namespace and name; `apiVersion` is the version to request. */
export type InventoryEntry = { apiVersion: string; kind: string; namespace?: string; name: string; uid: string }

/** The identity of an object, which does not depend on the version. */
export function inventoryKey(entry: { apiVersion: string; kind: string; namespace?: string; name: string }): string {
  return [parseApiVersion(entry.apiVersion).group, entry.kind, entry.namespace ?? '', entry.name].join('\n')
}

export function inventoryEntry({ apiVersion, kind, metadata }: KubeObject): InventoryEntry {
  const { name, namespace, uid } = metadata
  return { apiVersion, kind, ...(namespace && { namespace }), name, uid }
}

/** The entry of an object that may not exist yet: its uid is empty. */
export function plannedEntry({ object }: ResolvedManifest): InventoryEntry {
  const { name, namespace } = object.metadata
  return { apiVersion: object.apiVersion, kind: object.kind, ...(namespace && { namespace }), name: name ?? '', uid: '' }
}

/** Entries that the source no longer contains, in the order of deletion. */
export function entriesToPrune(
  { spec }: EngineContext,
  manifests: readonly ResolvedManifest[],
  inventory: readonly InventoryEntry[],
): InventoryEntry[] {
  if (spec.manifests?.prune === false) return []
  const present = new Set(manifests.map(manifest => inventoryKey(plannedEntry(manifest))))
  return inventory.filter(entry => !present.has(inventoryKey(entry))).sort((a, b) => applyRank(b.kind) - applyRank(a.kind))
}

/** `ConfigMap shop/web`, for messages. */
export function formatEntry({ kind, namespace, name }: { kind: string; namespace?: string; name: string }): string {
  return `${kind} ${namespace ? `${namespace}/` : ''}${name}`
}

/** Parses the Stack's record. Anything that {@link serializeInventory} did not write is an empty inventory. */
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
