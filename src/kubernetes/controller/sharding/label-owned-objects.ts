import { type Client, metadataOnly } from '../../client/index.ts'
import { isReason, type KubeObject, type Resource } from '../../object/index.ts'
import type { Selection } from '../selection.ts'
import { controllerOf } from '../sources.ts'
import { bucketLabel, bucketOf, bucketOfObject } from './bucket.ts'
import { unlabeledSelectorOf } from './unlabeled-objects.ts'

export type LabelOwnedOptions = Pick<Selection, 'namespace' | 'labelSelector'> & {
  /** The kind that the controller is `for`. */
  for: Resource<unknown>
  /** The kind that it owns, whose objects are labeled. */
  owned: Resource<unknown>
  /** `informer.sharded` of that controller; default `root`. With `owned` an object gets the bucket in the label of its owner, so label these first. */
  sharded?: 'root' | 'owned' | undefined
  /** Counts what would be labeled and writes nothing; default false. */
  isDryRun?: boolean | undefined
  signal?: AbortSignal | undefined
}

export type LabelOwnedResult = {
  /** Objects that got the label, or would get it. */
  labeled: number
  /** Owned objects that have no label yet: they kept changing, or their own owner has none. Call it again. */
  remaining: number
}

/** Patches in flight, objects per page, and how often objects are read again that changed before they were patched. */
const [concurrency, pageSize, maxPasses] = [10, 500, 5]

/**
 * Labels the objects of a kind that existed before sharding was enabled with the bucket of their root, so that the caches of the members have
 * them. Reads only the objects without the label, and changes nothing else of them; may be called again, also while the operator runs.
 * Needs the rights to list and patch `owned`, and with `sharded: 'owned'` to list `for`.
 * @throws {StatusError} if an object cannot be listed or patched.
 */
export async function labelOwnedObjects(client: Client, options: LabelOwnedOptions): Promise<LabelOwnedResult> {
  const { owned, namespace, labelSelector, isDryRun = false, signal } = options
  const handle = client.resource(metadataOnly(owned))
  const bucketOfOwner = await bucketsOfOwners(client, options)
  let labeled = 0
  for (let pass = 1; ; pass++) {
    const { items } = await handle.listAll({ namespace, labelSelector: unlabeledSelectorOf(labelSelector), limit: pageSize, signal })
    const objects = items.filter(({ metadata }) => controllerOf(metadata, options.for))
    let changed = 0
    let unknown = 0
    const queue = objects.values()
    const work = async () => {
      for (const object of queue) {
        const bucket = bucketOfOwner(object)
        if (bucket === undefined) unknown++
        else if (isDryRun || (await label(object, bucket))) labeled++
        else changed++
      }
    }
    await Promise.all(Array.from({ length: concurrency }, work))
    if (changed === 0 || pass === maxPasses) return { labeled, remaining: changed + unknown }
  }

  /** Returns false if the object has changed since it was listed: its owner may have, too. */
  async function label({ metadata }: KubeObject<unknown>, bucket: number): Promise<boolean> {
    const patch = { metadata: { labels: { [bucketLabel]: String(bucket) } } }
    const { name, namespace, resourceVersion } = metadata
    try {
      await handle.patch(name, patch, { type: 'merge', namespace, resourceVersion, signal })
      return true
    } catch (error) {
      if (isReason(error, 'Conflict', 'NotFound')) return false
      throw error
    }
  }
}

/** Returns a function with the bucket of an owned object, which is that of what controls it. */
async function bucketsOfOwners(client: Client, options: LabelOwnedOptions): Promise<(object: KubeObject<unknown>) => number | undefined> {
  const uidOf = ({ metadata }: KubeObject<unknown>) => controllerOf(metadata, options.for)?.uid ?? ''
  if (options.sharded !== 'owned') return object => bucketOf(uidOf(object))
  const { items } = await client.resource(metadataOnly(options.for)).listAll({ limit: pageSize, signal: options.signal })
  const buckets = new Map(items.map(owner => [owner.metadata.uid, bucketOfObject('owned', owner)]))
  return object => buckets.get(uidOf(object))
}
