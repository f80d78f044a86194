import type { KubeObject } from '../object/index.ts'

/** One list+watch that fills a part of a cache. */
export type Feed = {
  readonly labelSelector?: string | undefined
  readonly shardSelector?: string | undefined
  /** Starts with a watch from here instead of a list. */
  readonly resourceVersion?: string | undefined
  /** Whether an object belongs to this part. Tested for all that is received, because servers may ignore the selector. */
  includes(object: KubeObject<unknown>): boolean
  /** For a start from `resourceVersion`: whether the cache has received this event, or its effect in a list, already. */
  hasReceived?(object: KubeObject<unknown>): boolean
  /** The keys of this part that the cache has; undefined: all. */
  keys(): Iterable<string> | undefined
  /** A list is complete, or an event was received: the cache has this part as of this version. */
  onVersion(resourceVersion: string): void
  readonly signal: AbortSignal
}

/** What fills a cache, if that is not one list+watch with a fixed selection. */
export type InformerSource = {
  /** Whether the cache has all that it should have now. */
  readonly isFilled: boolean
  /** Whether the cache may have the object now. */
  includes(object: KubeObject<unknown>): boolean
  /** Up to this version the cache has received every event of each of its parts. */
  readonly receivedVersion: string
  /** Follows until `signal` aborts. */
  run(host: FeedHost, signal: AbortSignal): Promise<void>
}

/** What an {@link InformerSource} may do with its cache. */
export type FeedHost = {
  /** Runs a list+watch until its signal aborts. */
  follow(feed: Feed): Promise<void>
  /** Removes objects that do not belong to the cache any more; handlers see a deletion. */
  forget(keys: Iterable<string>): void
  /** The cache counts as filled. */
  synced(): void
}
