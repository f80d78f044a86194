import type { Client } from '../../../kubernetes/client/index.ts'
import { changedFields, desiredFields } from '../../../kubernetes/object/index.ts'
import type { EngineContext, PlanResult } from '../engine.ts'
import { jsonDigest } from '../json-digest.ts'
import { describeFailure } from './describe-failure.ts'
import { diffObjects, type ObjectChange } from './diff-objects.ts'
import { entriesToPrune, formatEntry, type InventoryEntry, inventoryKey, plannedEntry } from './inventory.ts'
import { mapConcurrently } from './map-concurrently.ts'
import { fieldManager, isOwnObject } from './ownership.ts'
import type { ResolvedManifest } from './resolve-manifests.ts'

type Change = {
  action: 'add' | 'change' | 'none'
  key: string
  line: string
  before?: Record<string, unknown>
  after: Record<string, unknown>
  identity: Pick<ObjectChange, 'apiVersion' | 'kind' | 'namespace' | 'name'>
}

/** Compares every manifest with the cluster by a server-side dry run. Changes nothing. @throws {EngineError} */
export async function planManifests(
  context: EngineContext,
  client: Client,
  manifests: readonly ResolvedManifest[],
  inventory: readonly InventoryEntry[],
): Promise<Omit<PlanResult, 'intent'>> {
  const entries = new Map(inventory.map(entry => [inventoryKey(entry), entry]))
  const changes = await mapConcurrently(manifests, manifest =>
    planOne(context, client, manifest, manifests, entries.get(inventoryKey(plannedEntry(manifest)))),
  )
  const pruned = entriesToPrune(context, manifests, inventory)
  const adds = changes.filter(({ action }) => action === 'add')
  const updates = changes.filter(({ action }) => action === 'change')
  const summary = [...adds, ...updates].map(({ line }) => line)
  for (const entry of pruned) summary.push(`- ${formatEntry(entry)}`)
  const digest = jsonDigest({
    changes: [...adds, ...updates].map(({ line: _, identity: _i, ...change }) => change),
    pruned: pruned.map(inventoryKey),
  })
  const hasChanges = adds.length + updates.length + pruned.length > 0
  const counts = { add: adds.length, change: updates.length, destroy: pruned.length }
  if (!hasChanges) return { digest, ...counts, hasChanges, summary }
  const written = [...adds, ...updates].map(
    ({ action, identity, before, after }): ObjectChange => ({ action: action === 'add' ? 'add' : 'change', ...identity, before, after }),
  )
  return { digest, ...counts, hasChanges, summary, diff: diffObjects([...written, ...pruned.map(deletion)]) }
}

const deletion = ({ apiVersion, kind, namespace, name }: InventoryEntry): ObjectChange => ({
  action: 'delete',
  ...{ apiVersion, kind, namespace, name },
})

/** Deletes everything in the inventory. */
export function planDestroy(inventory: readonly InventoryEntry[]): Omit<PlanResult, 'intent'> {
  const summary = inventory.map(entry => `- ${formatEntry(entry)}`)
  const digest = jsonDigest({ destroy: inventory })
  const hasChanges = inventory.length > 0
  const diff = hasChanges ? diffObjects(inventory.map(deletion)) : undefined
  return { digest, add: 0, change: 0, destroy: inventory.length, hasChanges, summary, ...(diff && { diff }) }
}

async function planOne(
  context: EngineContext,
  client: Client,
  manifest: ResolvedManifest,
  all: readonly ResolvedManifest[],
  entry: InventoryEntry | undefined,
): Promise<Change> {
  const { object, resource, location, pendingCrd } = manifest
  const { name, namespace } = object.metadata as { name: string; namespace?: string }
  const key = inventoryKey(plannedEntry(manifest))
  const text = formatEntry({ kind: object.kind, namespace, name })
  const identity = { apiVersion: object.apiVersion, kind: object.kind, namespace, name }
  const added: Change = { action: 'add', key, line: `+ ${text}`, after: object, identity }
  if (pendingCrd) return added
  const handle = client.resource(resource)
  try {
    const live = await handle.getOrUndefined(name, { namespace, signal: context.signal })
    if (live === undefined) {
      // A dry run in a namespace that this source creates would fail, because the namespace does not exist yet.
      const isInNewNamespace = all.some(({ object: other }) => other.kind === 'Namespace' && other.metadata.name === namespace)
      if (!isInNewNamespace) await handle.apply(object, { dryRun: true, fieldManager, signal: context.signal })
      return added
    }
    const isOwn = isOwnObject(context, location, live, entry)
    const after = await handle.apply(object, { dryRun: true, force: isOwn, fieldManager, signal: context.signal })
    const [before, next] = [desiredFields(live), desiredFields(after)]
    const fields = changedFields(before, next)
    if (fields.length === 0 && entry !== undefined) return { action: 'none', key, line: '', after: next, identity }
    const what = fields.length === 0 ? 'now managed by this Stack' : fields.slice(0, 10).join(', ')
    return { action: 'change', key, line: `~ ${text} (${what})`, before, after: next, identity }
  } catch (error) {
    throw describeFailure(context, error, location, 'PlanFailed')
  }
}
