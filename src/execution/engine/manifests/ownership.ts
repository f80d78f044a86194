import { ownerAnnotation } from '../../../api/index.ts'
import type { KubeObject } from '../../../kubernetes/object/index.ts'
import type { EngineContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import type { InventoryEntry } from './inventory.ts'

export const fieldManager = 'oarlock'

export function ownerOf({ stack }: EngineContext): string {
  return `${stack.namespace}/${stack.name}`
}

/**
 * True when the object is the one in the inventory, and was not deleted and recreated by another client: then our fields may be forced.
 * @throws {EngineError} when another Stack owns the object.
 */
export function isOwnObject(context: EngineContext, location: string, live: KubeObject, entry: InventoryEntry | undefined): boolean {
  const owner = live.metadata.annotations?.[ownerAnnotation]
  if (owner !== undefined && owner !== ownerOf(context)) {
    throw new EngineError(
      'PlanFailed',
      `${location}: belongs to Stack ${owner}; remove it there first, or remove its annotation ${ownerAnnotation} to take it over`,
      { retryable: true },
    )
  }
  if (entry === undefined) return false
  return entry.uid === '' ? owner !== undefined : entry.uid === live.metadata.uid
}
