import type { Client } from '../../../kubernetes/client/index.ts'
import { computeKStatus, type KubeObject } from '../../../kubernetes/object/index.ts'
import type { ApplyResult, EngineContext, PlanResult } from '../engine.ts'
import { interruptedError } from '../engine-error.ts'
import { groupByRank } from './apply-order.ts'
import { deleteEntries } from './delete-objects.ts'
import { describeFailure } from './describe-failure.ts'
import {
  entriesToPrune,
  formatEntry,
  type InventoryEntry,
  inventoryEntry,
  inventoryKey,
  parseInventory,
  plannedEntry,
  serializeInventory,
} from './inventory.ts'
import { mapConcurrently } from './map-concurrently.ts'
import { fieldManager, isOwnObject } from './ownership.ts'
import { discoverResource, type ResolvedManifest } from './resolve-manifests.ts'
import { waitForCurrent, waitTimeoutMs } from './wait-for-current.ts'

/**
 * Applies the manifests in the order of their kinds, prunes the objects that the source no longer contains, and waits until all are Current.
 * @throws {EngineError}
 */
export async function applyManifests(
  context: EngineContext,
  client: Client,
  manifests: readonly ResolvedManifest[],
  plan: PlanResult,
): Promise<ApplyResult> {
  const { signal, log } = context
  const inventory = parseInventory(await context.inventory.read())
  const entries = new Map(inventory.map(entry => [inventoryKey(entry), entry]))
  const pruned = entriesToPrune(context, manifests, inventory)
  const timeoutMs = waitTimeoutMs(context)
  const applied: { manifest: ResolvedManifest; object: KubeObject }[] = []
  const total = manifests.length + pruned.length

  if (plan.hasChanges) {
    // Written before anything is created, so that the inventory has every object even if the Run is killed. The uid is added afterwards.
    const planned = manifests.map(plannedEntry).filter(entry => !entries.has(inventoryKey(entry)))
    if (planned.length > 0) await context.inventory.write(serializeInventory([...inventory, ...planned]))
    for (const entry of planned) entries.set(inventoryKey(entry), entry)
  }
  try {
    for (const group of groupByRank(manifests, ({ object }) => object.kind)) {
      await mapConcurrently(group, async manifest => {
        if (!plan.hasChanges) return
        context.progress({ done: applied.length, total, current: manifest.location })
        const object = await applyOne(context, client, manifest, entries.get(inventoryKey(plannedEntry(manifest))))
        applied.push({ manifest, object })
        log(`applied ${formatEntry({ kind: object.kind, ...object.metadata })}`)
      })
      // The server rejects objects of a new kind until it serves that kind.
      const crds = group.filter(({ object }) => object.kind === 'CustomResourceDefinition')
      if (crds.length > 0) await waitForManifests(context, client, crds, timeoutMs)
    }
  } finally {
    for (const { manifest, object } of applied) entries.set(inventoryKey(plannedEntry(manifest)), inventoryEntry(object))
    if (applied.length > 0) await context.inventory.write(serializeInventory([...entries.values()]))
  }
  if (pruned.length > 0) {
    for (const entry of pruned) log(`deleting ${formatEntry(entry)}, which is no longer in the source`)
    await deleteEntries(context, client, pruned, timeoutMs)
    for (const entry of pruned) entries.delete(inventoryKey(entry))
    await context.inventory.write(serializeInventory([...entries.values()]))
  }
  if (context.spec.manifests?.wait !== false) {
    await waitForManifests(context, client, manifests, timeoutMs, pruned.length)
  }
  if (signal.aborted) throw interruptedError('manifests', 'apply', 'the inventory has every object that it applied')
  context.progress({ done: total, total })
  return { outputs: {}, resources: entries.size, changed: plan.hasChanges }
}

async function applyOne(
  context: EngineContext,
  client: Client,
  manifest: ResolvedManifest,
  entry: InventoryEntry | undefined,
): Promise<KubeObject> {
  const { object, location } = manifest
  const { name, namespace } = object.metadata as { name: string; namespace?: string }
  try {
    // Discovered again: a kind that this source defines is served only now.
    const handle = client.resource((await discoverResource(client, object.apiVersion, object.kind)) ?? manifest.resource)
    const live = await handle.getOrUndefined(name, { namespace, signal: context.signal })
    const isOwn = live !== undefined && isOwnObject(context, location, live, entry)
    return await handle.apply(object, { force: isOwn, fieldManager, signal: context.signal })
  } catch (error) {
    throw describeFailure(context, error, location, 'ApplyFailed')
  }
}

async function waitForManifests(
  context: EngineContext,
  client: Client,
  manifests: readonly ResolvedManifest[],
  timeoutMs: number,
  alreadyDone = 0,
): Promise<void> {
  const total = manifests.length + alreadyDone
  await waitForCurrent(
    manifests.map(({ object, resource, location }) => {
      const { name, namespace } = object.metadata as { name: string; namespace?: string }
      return {
        text: formatEntry({ kind: object.kind, namespace, name }),
        poll: async () => {
          try {
            const live = await client.resource(resource).getOrUndefined(name, { namespace, signal: context.signal })
            return live ? computeKStatus(live) : { status: 'InProgress', message: 'does not exist' }
          } catch (error) {
            throw describeFailure(context, error, location, 'ApplyFailed')
          }
        },
      }
    }),
    {
      timeoutMs,
      signal: context.signal,
      onProgress: (current, pending) =>
        context.progress({ done: current + alreadyDone, total, ...(pending !== undefined && { current: `waiting for ${pending}` }) }),
    },
  )
}
