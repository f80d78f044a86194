import { type Client, metadataOnly } from '../../client/index.ts'
import { type KubeObject, objectKey, type Resource } from '../../object/index.ts'
import { coerceError, type Log } from '../../util/log.ts'
import type { Timers } from '../../util/timers.ts'
import type { Selection } from '../selection.ts'
import { controllerOf } from '../sources.ts'
import { type Buckets, bucketLabel } from './bucket.ts'

/** A kind whose objects a sharded controller owns, and which of them its cache selects. */
export type OwnedKind = {
  resource: Resource<unknown>
  client: Client
  selection: Pick<Selection, 'namespace' | 'labelSelector' | 'fieldSelector'>
}

/** How many objects without the label were found per kind, by its plural and group. */
export type UnlabeledCount = { resource: string; count: number }

/** Selects what has no label with a bucket, of the objects that `base` selects. */
export const unlabeledSelectorOf = (base?: string): string => (base ? `${base},!${bucketLabel}` : `!${bucketLabel}`)

/** The member with this bucket checks for all. */
const checkingBucket = 0
const checkIntervalMs = 600_000
/** At most 10,000 objects without the label are read per kind, of which others may own most. */
const [pageSize, maxPages] = [500, 20]

/**
 * Counts the objects that a sharded controller owns and no member sees, because they have no label with a bucket: created before sharding was
 * enabled or by other clients, or the label was removed. One member reads them when it starts to work and then every ten minutes.
 */
export class UnlabeledObjects {
  readonly #owner: Resource<unknown>
  readonly #kinds: readonly OwnedKind[]
  readonly #log: Log
  readonly #timers: Timers
  #counts: UnlabeledCount[] = []
  #checking: AbortController | undefined

  constructor(owner: Resource<unknown>, kinds: readonly OwnedKind[], { log, timers }: { log: Log; timers: Timers }) {
    this.#owner = owner
    this.#kinds = kinds
    this.#log = log
    this.#timers = timers
  }

  /** Of the last check; empty in members that do not check. */
  get counts(): readonly UnlabeledCount[] {
    return this.#counts
  }

  begun(buckets: Buckets): void {
    if (this.#kinds.length > 0 && buckets.includes(checkingBucket)) this.#start()
  }

  ended(buckets: Buckets): void {
    if (buckets.includes(checkingBucket)) this.stop()
  }

  stop(): void {
    this.#checking?.abort()
    this.#checking = undefined
    this.#counts = []
  }

  #start(): void {
    this.stop()
    const checking = new AbortController()
    this.#checking = checking
    const check = async () => {
      const counts: UnlabeledCount[] = []
      for (const kind of this.#kinds) {
        const count = await this.#count(kind, checking.signal)
        if (checking.signal.aborted) return
        const resource = nameOf(kind.resource)
        const known = counts.find(each => each.resource === resource)
        // The same kind in another cluster.
        if (known) known.count += count
        else counts.push({ resource, count })
      }
      this.#counts = counts
      const cancel = this.#timers.after(checkIntervalMs, () => void check())
      checking.signal.addEventListener('abort', cancel, { once: true })
    }
    void check()
  }

  async #count({ resource, client, selection }: OwnedKind, signal: AbortSignal): Promise<number> {
    const found: string[] = []
    let isComplete = false
    try {
      let token: string | undefined
      for (let page = 0; page < maxPages && !isComplete; page++) {
        const { items, metadata } = await client.resource(metadataOnly(resource)).list({
          ...selection,
          labelSelector: unlabeledSelectorOf(selection.labelSelector),
          limit: pageSize,
          continue: token,
          signal,
        })
        for (const object of items) if (isOwnedBy(object, this.#owner)) found.push(objectKey(object))
        token = metadata.continue
        isComplete = !token
      }
    } catch (error) {
      if (!signal.aborted)
        this.#log.warn(
          { err: coerceError(error), kind: nameOf(resource) },
          'objects without a bucket label cannot be counted, trying again later',
        )
    }
    if (found.length > 0 && !signal.aborted) {
      const fields = { kind: nameOf(resource), count: found.length, isComplete, examples: found.slice(0, 3) }
      this.#log.warn(
        fields,
        `owned objects without the label ${bucketLabel} are missing from the caches of all members, which may create them again: label them with labelOwnedObjects()`,
      )
    }
    return found.length
  }
}

/** Whether an object of `owner`'s kind controls it. */
export function isOwnedBy({ metadata }: KubeObject<unknown>, owner: Resource<unknown>): boolean {
  return controllerOf(metadata, owner) !== undefined
}

function nameOf({ plural, group }: Resource<unknown>): string {
  return group ? `${plural}.${group}` : plural
}
