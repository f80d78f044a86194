import { compareResourceVersions, systemClock } from '../../client/index.ts'
import type { KubeObject } from '../../object/index.ts'
import type { Feed, FeedHost, InformerSource } from '../informer-source.ts'
import { bucketCount, bucketLabelSelectorOf, bucketOfObject, bucketsWhere, shardSelectorOf } from './bucket.ts'

/** Buckets that were gained or lost one after the other are merged into one watch when nothing has changed for this long. */
const mergeDelayMs = 1_000

type OpenFeed = {
  /** 1 for the buckets that it watches. */
  readonly buckets: Uint8Array<ArrayBuffer>
  readonly stop: AbortController
  /** Empty until its first list is complete. */
  resourceVersion: string
  /** Its selector has buckets that were lost. */
  isTooWide: boolean
}

export type ShardedSourceOptions = {
  /** `root`: the bucket of an object is that of its UID. `owned`: it is in its label. */
  by: 'root' | 'owned'
  /** What every object must match in addition. */
  labelSelector: string | undefined
  /** The keys of a bucket that the cache has. */
  keysOf(bucket: number): Iterable<string>
  /** Buckets were filled. */
  onSynced(): void
}

/**
 * Fills a cache with the objects of a changing set of buckets. Gained buckets get a watch of their own, which is merged with the others
 * when its first list is complete: the merged one resumes from the lowest version, so nothing is listed twice. Lost buckets are dropped.
 */
export class ShardedSource implements InformerSource {
  readonly #options: ShardedSourceOptions
  readonly #feeds = new Set<OpenFeed>()
  #wanted = new Uint8Array(bucketCount)
  #synced = new Uint8Array(bucketCount)
  #host: FeedHost | undefined
  #signal: AbortSignal | undefined
  #merging: AbortController | undefined

  constructor(options: ShardedSourceOptions) {
    this.#options = options
  }

  /** 1 for the buckets that the cache has. */
  get synced(): Uint8Array {
    return this.#synced
  }

  /** How many watches are open. */
  get watches(): number {
    return this.#feeds.size
  }

  get receivedVersion(): string {
    let lowest: string | undefined
    for (const { resourceVersion } of this.#feeds)
      if (resourceVersion !== '' && (lowest === undefined || compareResourceVersions(resourceVersion, lowest) < 0)) lowest = resourceVersion
    return lowest ?? ''
  }

  get isFilled(): boolean {
    return this.#wanted.every((flag, bucket) => flag === 0 || this.#synced[bucket] === 1)
  }

  includes(object: KubeObject<unknown>): boolean {
    return this.#isIn(this.#wanted, object)
  }

  async run(host: FeedHost, signal: AbortSignal): Promise<void> {
    this.#host = host
    this.#signal = signal
    this.#announce()
    this.#open()
    await new Promise<void>(resolve => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    this.#merging?.abort()
    for (const { stop } of this.#feeds) stop.abort()
  }

  /** From now on the cache should have the buckets that are 1 in `wanted`. */
  setWanted(wanted: Uint8Array<ArrayBuffer>): void {
    const before = this.#wanted
    this.#wanted = wanted.slice()
    const lost = bucketsWhere(bucket => before[bucket] === 1 && wanted[bucket] === 0)
    for (const bucket of lost) this.#synced[bucket] = 0
    if (!this.#host) return
    for (const bucket of lost) this.#host.forget([...this.#options.keysOf(bucket)])
    this.#announce()
    this.#open()
  }

  /** A process without buckets has all that it should have; one that already works on some, when its first lists are complete. */
  #announce(): void {
    if (this.isFilled) this.#host?.synced()
  }

  /** Opens a watch for wanted buckets that no feed has, and narrows or merges the others later. */
  #open(): void {
    const covered = new Uint8Array(bucketCount)
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
      feed.stop.abort()
      this.#feeds.delete(feed)
    }
    const missing = Uint8Array.from(covered, (has, bucket) => (has === 0 && this.#wanted[bucket] === 1 ? 1 : 0))
    if (missing.includes(1)) this.#start(missing)
    this.#mergeLater()
  }

  #start(buckets: Uint8Array<ArrayBuffer>, resumed?: Required<Pick<Feed, 'resourceVersion' | 'hasReceived'>>): void {
    const { by, labelSelector, keysOf } = this.#options
    const host = this.#host
    if (!host || this.#signal?.aborted) return
    const feed: OpenFeed = { buckets, stop: new AbortController(), resourceVersion: resumed?.resourceVersion ?? '', isTooWide: false }
    this.#feeds.add(feed)
    const set = bucketsWhere(bucket => buckets[bucket] === 1)
    const selectors =
      by === 'root'
        ? { labelSelector, shardSelector: shardSelectorOf(set) }
        : { labelSelector: bucketLabelSelectorOf(set, labelSelector), shardSelector: undefined }
    const keys = function* () {
      for (let bucket = 0; bucket < bucketCount; bucket++) if (buckets[bucket] === 1) yield* keysOf(bucket)
    }
    // An error can only be a closed client.
    void host.follow({
      ...selectors,
      ...resumed,
      includes: object => this.#isIn(buckets, object),
      keys,
      signal: feed.stop.signal,
      onVersion: version => {
        const isFirst = feed.resourceVersion === ''
        feed.resourceVersion = version
        if (isFirst) this.#filled(feed)
      },
    })
  }

  #filled(feed: OpenFeed): void {
    for (let bucket = 0; bucket < bucketCount; bucket++) if (feed.buckets[bucket] === 1) this.#synced[bucket] = 1
    this.#announce()
    this.#options.onSynced()
    this.#mergeLater()
  }

  /** One watch in place of several, and none for more than is wanted. */
  #mergeLater(): void {
    this.#merging?.abort()
    const merging = new AbortController()
    this.#merging = merging
    void systemClock.sleep(mergeDelayMs, merging.signal).then(() => {
      if (!merging.signal.aborted) this.#merge()
    })
  }

  #merge(): void {
    const feeds = [...this.#feeds]
    if (feeds.some(({ resourceVersion }) => resourceVersion === '')) return
    const [only] = feeds
    if (!only || (feeds.length === 1 && !only.isTooWide)) return
    const resourceVersion = this.receivedVersion
    const receivedVersions = new Array<string>(bucketCount).fill('')
    for (const feed of feeds) {
      for (let bucket = 0; bucket < bucketCount; bucket++) if (feed.buckets[bucket] === 1) receivedVersions[bucket] = feed.resourceVersion
      feed.stop.abort()
      this.#feeds.delete(feed)
    }
    // What was deleted before the list of a newer feed would return with the events that are repeated.
    const hasReceived = (object: KubeObject<unknown>) => {
      const bucket = bucketOfObject(this.#options.by, object)
      return bucket !== undefined && compareResourceVersions(object.metadata.resourceVersion, receivedVersions[bucket]!) <= 0
    }
    this.#start(this.#wanted.slice(), { resourceVersion, hasReceived })
  }

  #isIn(buckets: Uint8Array, object: KubeObject<unknown>): boolean {
    const bucket = bucketOfObject(this.#options.by, object)
    return bucket !== undefined && buckets[bucket] === 1
  }
}
