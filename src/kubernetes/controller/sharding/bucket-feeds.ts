import { compareResourceVersions } from '../../client/index.ts'
import { type Buckets, bucketCount, bucketsWhere } from './bucket.ts'

/** Buckets that were gained or lost one after the other are merged into one watch when nothing has changed for this long. */
export const mergeDelayMs = 1_000

/** One watch of some buckets. */
export type BucketFeed = {
  /** 1 for the buckets that it fills; narrower than its selector after some were lost. */
  readonly buckets: Uint8Array<ArrayBuffer>
  /** It begins here instead of with a list: `receivedVersions` is up to which version each bucket has been received before. */
  readonly resumed: { readonly resourceVersion: string; readonly receivedVersions: readonly string[] } | undefined
}

/** The watches that end now, and the one that begins. */
export type FeedChange = { readonly stopped: readonly BucketFeed[]; readonly started: BucketFeed | undefined }

type OpenFeed = BucketFeed & {
  /** Empty until its first list is complete. */
  resourceVersion: string
  /** Its selector has buckets that were lost. */
  isTooWide: boolean
}

/**
 * Decides which watches fill a cache with a changing set of buckets. Gained buckets get a watch of their own, which is merged with the others
 * when its first list is complete: the merged one resumes from the lowest version, so nothing is listed twice. Lost buckets are dropped.
 * Has no clock and opens nothing: `sharded-source.ts` and the simulation do both in the same way.
 *
 * Invariants: a bucket is in at most one open feed; a synced bucket is wanted and in a feed that has a version.
 */
export class BucketFeeds {
  readonly #feeds = new Set<OpenFeed>()
  #wanted = new Uint8Array(bucketCount)
  readonly #synced = new Uint8Array(bucketCount)

  /** 1 for the buckets that the cache should have. */
  get wanted(): Uint8Array {
    return this.#wanted
  }

  /** 1 for the buckets that the cache has. */
  get synced(): Uint8Array {
    return this.#synced
  }

  get open(): ReadonlySet<BucketFeed> {
    return this.#feeds
  }

  /** The lowest version up to which an open feed has been received; empty without one. */
  get receivedVersion(): string {
    let lowest = ''
    for (const { resourceVersion } of this.#feeds)
      if (resourceVersion !== '' && (lowest === '' || compareResourceVersions(resourceVersion, lowest) < 0)) lowest = resourceVersion
    return lowest
  }

  get isFilled(): boolean {
    return this.#wanted.every((flag, bucket) => flag === 0 || this.#synced[bucket] === 1)
  }

  /** From now on the cache should have the buckets that are 1 in `wanted`. Returns those that it must drop; {@link adjust} is due after that. */
  setWanted(wanted: Uint8Array<ArrayBuffer>): Buckets {
    const lost = bucketsWhere(bucket => this.#wanted[bucket] === 1 && wanted[bucket] === 0)
    this.#wanted = wanted.slice()
    for (const bucket of lost) this.#synced[bucket] = 0
    return lost
  }

  /** Opens a feed for wanted buckets that none has, and ends those of which nothing is wanted. {@link merge} is due {@link mergeDelayMs} after the last change. */
  adjust(): FeedChange {
    const covered = new Uint8Array(bucketCount)
    const stopped: BucketFeed[] = []
    for (const feed of this.#feeds) {
      let isNeeded = false
      for (let bucket = 0; bucket < bucketCount; bucket++) {
        if (feed.buckets[bucket] === 0) continue
        // A bucket that was lost meanwhile is not in the cache any more: if it returns, it is listed again.
        if (this.#wanted[bucket] === 0) {
          feed.buckets[bucket] = 0
          feed.isTooWide = true
        } else {
          covered[bucket] = 1
          isNeeded = true
        }
      }
      if (isNeeded) continue
      stopped.push(feed)
      this.#feeds.delete(feed)
    }
    const missing = Uint8Array.from(covered, (has, bucket) => (has === 0 && this.#wanted[bucket] === 1 ? 1 : 0))
    return { stopped, started: missing.includes(1) ? this.#start(missing, undefined) : undefined }
  }

  /** One feed in place of several, and none for more than is wanted; changes nothing while a list is not complete. */
  merge(): FeedChange {
    const feeds = [...this.#feeds]
    const [only] = feeds
    const mustWait = feeds.some(({ resourceVersion }) => resourceVersion === '')
    if (mustWait || !only || (feeds.length === 1 && !only.isTooWide)) return { stopped: [], started: undefined }
    const resourceVersion = this.receivedVersion
    const receivedVersions = new Array<string>(bucketCount).fill('')
    for (const feed of feeds)
      for (let bucket = 0; bucket < bucketCount; bucket++) if (feed.buckets[bucket] === 1) receivedVersions[bucket] = feed.resourceVersion
    this.#feeds.clear()
    return { stopped: feeds, started: this.#start(this.#wanted.slice(), { resourceVersion, receivedVersions }) }
  }

  /** A feed has been received up to a version. Returns whether that completed its first list: its buckets are filled, and {@link merge} is due later. */
  received(feed: BucketFeed, resourceVersion: string): boolean {
    const open = feed as OpenFeed
    if (!this.#feeds.has(open)) return false
    const isFirst = open.resourceVersion === ''
    open.resourceVersion = resourceVersion
    if (!isFirst) return false
    for (let bucket = 0; bucket < bucketCount; bucket++) if (feed.buckets[bucket] === 1) this.#synced[bucket] = 1
    return true
  }

  #start(buckets: Uint8Array<ArrayBuffer>, resumed: BucketFeed['resumed']): BucketFeed {
    const feed: OpenFeed = { buckets, resumed, resourceVersion: resumed?.resourceVersion ?? '', isTooWide: false }
    this.#feeds.add(feed)
    return feed
  }
}
