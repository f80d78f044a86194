import { ownerAnnotation } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { computeKStatus, isReason } from '../../../kubernetes/object/index.ts'
import type { ApplyResult, EngineContext } from '../engine.ts'
import { groupByRank } from './apply-order.ts'
import { describeFailure } from './describe-failure.ts'
import { formatEntry, type InventoryEntry, inventoryKey, parseInventory, serializeInventory } from './inventory.ts'
import { mapConcurrently } from './map-concurrently.ts'
import { ownerOf } from './ownership.ts'
import { discoverResource } from './resolve-manifests.ts'
import { type AwaitedObject, waitForCurrent, waitTimeoutMs } from './wait-for-current.ts'

/** Deletes in reverse apply order: first what depends on others, then CRDs, then Namespaces. Each stage waits until its objects are deleted. */
export async function destroyInventory(context: EngineContext, client: Client): Promise<ApplyResult> {
  const inventory = parseInventory(await context.inventory.read())
  const stages = groupByRank(inventory, ({ kind }) => kind).reverse()
  let remaining = inventory
  for (const stage of stages) {
    for (const entry of stage) context.log(`deleting ${formatEntry(entry)}`)
    context.progress({
      done: inventory.length - remaining.length,
      total: inventory.length,
      current: stage[0] && formatEntry(stage[0]),
    })
    await deleteEntries(context, client, stage, waitTimeoutMs(context))
    const deleted = new Set(stage.map(inventoryKey))
    remaining = remaining.filter(entry => !deleted.has(inventoryKey(entry)))
    await context.inventory.write(serializeInventory(remaining))
  }
  context.progress({ done: inventory.length, total: inventory.length })
  return { outputs: {}, resources: 0, changed: inventory.length > 0 }
}

/** Deletes the objects that this Stack still owns, and waits until they no longer exist. @throws {EngineError} */
export async function deleteEntries(
  context: EngineContext,
  client: Client,
  entries: readonly InventoryEntry[],
  timeoutMs: number,
): Promise<void> {
  const deleting = await mapConcurrently(entries, entry => startDeletion(context, client, entry))
  await waitForCurrent(
    deleting.filter(each => each !== undefined),
    { timeoutMs, signal: context.signal },
  )
}

/** Undefined when there is nothing to wait for. */
async function startDeletion(context: EngineContext, client: Client, entry: InventoryEntry): Promise<AwaitedObject | undefined> {
  const text = formatEntry(entry)
  try {
    const resource = await discoverResource(client, entry.apiVersion, entry.kind)
    if (!resource) return undefined // its CRD was deleted, and every object with it
    const handle = client.resource(resource)
    const { name, namespace } = entry
    const live = await handle.getOrUndefined(name, { namespace, signal: context.signal })
    if (!live) return undefined
    const owner = live.metadata.annotations?.[ownerAnnotation]
    const isOwn = entry.uid === '' ? owner === ownerOf(context) : entry.uid === live.metadata.uid
    if (!isOwn || (owner !== undefined && owner !== ownerOf(context))) {
      context.log(`kept ${text}: it was recreated or taken over by another client`)
      return undefined
    }
    if (entry.kind === 'Namespace' && name === context.stack.namespace && context.kubeconfig === undefined) {
      context.log(`kept ${text}: it contains the Stack`)
      return undefined
    }
    const { uid } = live.metadata
    await handle.delete(name, { namespace, propagationPolicy: 'Background', preconditions: { uid }, signal: context.signal })
    return {
      text,
      poll: async () => {
        const now = await handle.getOrUndefined(name, { namespace, signal: context.signal })
        if (!now || now.metadata.uid !== uid) return { status: 'Current', message: 'deleted' }
        return { status: 'InProgress', message: computeKStatus(now).message }
      },
    }
  } catch (error) {
    if (isReason(error, 'NotFound')) return undefined
    throw describeFailure(context, error, `deleting ${text}`, 'DestroyFailed')
  }
}
