import { compareResourceVersions, systemClock } from '../../client/index.ts'
import type { KubeObject } from '../../object/index.ts'
import type { FeedHost, InformerSource } from '../informer-source.ts'
import { bucketCount, bucketLabelSelectorOf, bucketOfObject, bucketsWhere, shardSelectorOf } from './bucket.ts'
import { type BucketFeed, BucketFeeds, type FeedChange, mergeDelayMs } from './bucket-feeds.ts'

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

/** Fills a cache with the objects of a changing set of buckets, by the watches that {@link BucketFeeds} decides. */
export class ShardedSource implements InformerSource {
  readonly #options: ShardedSourceOptions
  readonly #feeds = new BucketFeeds()
  readonly #stops = new Map<BucketFeed, AbortController>()
  #host: FeedHost | undefined
  #signal: AbortSignal | undefined
  #merging: AbortController | undefined

  constructor(options: ShardedSourceOptions) {
    this.#options = options
  }

  /** 1 for the buckets that the cache has. */
  get synced(): Uint8Array {
    return this.#feeds.synced
  }

  /** How many watches are open. */
  get watches(): number {
    return this.#stops.size
  }

  get receivedVersion(): string {
    return this.#feeds.receivedVersion
  }

  get isFilled(): boolean {
    return this.#feeds.isFilled
  }

  includes(object: KubeObject<unknown>): boolean {
    return this.#isIn(this.#feeds.wanted, object)
  }

  async run(host: FeedHost, signal: AbortSignal): Promise<void> {
    this.#host = host
    this.#signal = signal
    this.#announce()
    this.#adjust()
    await new Promise<void>(resolve => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    this.#merging?.abort()
    for (const stop of this.#stops.values()) stop.abort()
  }

  /** From now on the cache should have the buckets that are 1 in `wanted`. */
  setWanted(wanted: Uint8Array<ArrayBuffer>): void {
    const lost = this.#feeds.setWanted(wanted)
    if (!this.#host) return
    for (const bucket of lost) this.#host.forget([...this.#options.keysOf(bucket)])
    this.#announce()
    this.#adjust()
  }

  /** A process without buckets has all that it should have; one that already works on some, when its first lists are complete. */
  #announce(): void {
    if (this.isFilled) this.#host?.synced()
  }

  #adjust(): void {
    if (this.#signal?.aborted) return
    this.#perform(this.#feeds.adjust())
    this.#mergeLater()
  }

  #mergeLater(): void {
    this.#merging?.abort()
    const merging = new AbortController()
    this.#merging = merging
    void systemClock.sleep(mergeDelayMs, merging.signal).then(() => {
      if (!merging.signal.aborted) this.#perform(this.#feeds.merge())
    })
  }

  #perform({ stopped, started }: FeedChange): void {
    for (const feed of stopped) {
      this.#stops.get(feed)?.abort()
      this.#stops.delete(feed)
    }
    if (started) this.#follow(started)
  }

  #follow(feed: BucketFeed): void {
    const { by, labelSelector, keysOf } = this.#options
    const { buckets, resumed } = feed
    const stop = new AbortController()
    this.#stops.set(feed, stop)
    const set = bucketsWhere(bucket => buckets[bucket] === 1)
    const selectors =
      by === 'root'
        ? { labelSelector, shardSelector: shardSelectorOf(set) }
        : { labelSelector: bucketLabelSelectorOf(set, labelSelector), shardSelector: undefined }
    const keys = function* () {
      for (let bucket = 0; bucket < bucketCount; bucket++) if (buckets[bucket] === 1) yield* keysOf(bucket)
    }
    // What was deleted before the list of a newer feed would return with the events that are repeated.
    const hasReceived = (object: KubeObject<unknown>) => {
      const bucket = bucketOfObject(by, object)
      return bucket !== undefined && compareResourceVersions(object.metadata.resourceVersion, resumed!.receivedVersions[bucket]!) <= 0
    }
    // An error can only be a closed client.
    void this.#host?.follow({
      ...selectors,
      ...(resumed && { resourceVersion: resumed.resourceVersion, hasReceived }),
      includes: object => this.#isIn(buckets, object),
      keys,
      signal: stop.signal,
      onVersion: version => {
        if (!this.#feeds.received(feed, version)) return
        this.#announce()
        this.#options.onSynced()
        this.#mergeLater()
      },
    })
  }

  #isIn(buckets: Uint8Array, object: KubeObject<unknown>): boolean {
    const bucket = bucketOfObject(this.#options.by, object)
    return bucket !== undefined && buckets[bucket] === 1
  }
}
