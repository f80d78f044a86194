import {
  formatShardSelector,
  type KubeObject,
  type NewObject,
  type OwnerReference,
  type ShardRange,
  shardHashHigh,
} from '../../object/index.ts'

/** Into how many buckets the keys of a sharded controller are divided. */
export const bucketCount = 1_024

/** Most slots that a ring can have: it stores the slot of a bucket as one character. */
export const maxSlots = 62

/** In place of the slot of a bucket that none has. */
export const noSlot = -1

/** Buckets are the top ten bits of a 64-bit hash, so that a bucket is one range of hashes. */
const bucketBits = 10

/**
 * The label with which an owned object carries the bucket of its root (a number from 0 to 1,023), set when it is created. Every API
 * server filters by it.
 */
export const bucketLabel = 'sharding.oarlock.dev/bucket'

/** Name of the index of a sharded cache by bucket. */
export const bucketIndex = 'sharding.oarlock.dev/bucket'

/** A set of buckets, in rising order. */
export type Buckets = readonly number[]

/** The bucket of an object, from 0 to 1,023: the top ten bits of the 64-bit FNV-1a hash of its UID. */
export function bucketOf(uid: string): number {
  return shardHashHigh(uid) >>> (32 - bucketBits)
}

/** The first and the last bucket of each run of adjacent ones, in the order of the list. */
export function bucketRangesOf(buckets: Buckets): [first: number, last: number][] {
  const ranges: [first: number, last: number][] = []
  for (const bucket of buckets) {
    const range = ranges.at(-1)
    if (range && range[1] === bucket - 1) range[1] = bucket
    else ranges.push([bucket, bucket])
  }
  return ranges
}

/**
 * The `shardSelector` of a set of buckets, adjacent ones as one range; undefined if it has all of them. It selects by the UID of the
 * object.
 * @throws {RangeError} for no buckets: a selector of nothing does not exist, so do not list.
 */
export function shardSelectorOf(buckets: Buckets): string | undefined {
  if (buckets.length === 0) throw new RangeError('a shardSelector needs at least one bucket, got none: list nothing instead')
  if (buckets.length === bucketCount) return undefined
  const ranges = bucketRangesOf(buckets).map(([first, last]): ShardRange => ({ start: boundary(first), end: boundary(last + 1) }))
  return formatShardSelector({ field: 'uid', ranges })
}

/** The `labelSelector` of the owned objects of a set of buckets; `base` is a selector that must also match. Without buckets it matches nothing. */
export function bucketLabelSelectorOf(buckets: Buckets, base?: string): string {
  const own = buckets.length === bucketCount ? bucketLabel : `${bucketLabel} in (${buckets.length === 0 ? 'none' : buckets.join(',')})`
  return base ? `${base},${own}` : own
}

/** The bucket in the label of an owned object; undefined if it has none that is valid. */
export function labeledBucketOf(labels: Readonly<Record<string, string>> | undefined): number | undefined {
  const text = labels?.[bucketLabel]
  if (text === undefined || !/^(?:0|[1-9]\d{0,3})$/.test(text)) return undefined
  const bucket = Number(text)
  return bucket < bucketCount ? bucket : undefined
}

/** The bucket of an object: of a root by its UID, of an owned object by its label; undefined if that is missing. */
export function bucketOfObject(by: 'root' | 'owned', { metadata }: KubeObject<unknown>): number | undefined {
  return by === 'root' ? bucketOf(metadata.uid) : labeledBucketOf(metadata.labels)
}

/**
 * Adds a label with its bucket to an object that is written for a key of `bucket`, if another object controls it. A label with another bucket is
 * replaced if the controlling object is in `bucket`, by its UID or by its own label, which `labelsOf` returns if it is known: someone changed the label, or
 * the object was adopted by a root that was deleted and created again.
 */
export function labelWithBucket<Body>(
  bucket: number,
  object: NewObject<Body>,
  labelsOf: (owner: OwnerReference) => Readonly<Record<string, string>> | undefined,
): NewObject<Body> {
  const { metadata } = object
  const owner = metadata.ownerReferences?.find(({ controller }) => controller)
  const labeled = labeledBucketOf(metadata.labels)
  if (!owner || labeled === bucket) return object
  // A key may also write what another root controls, which keeps its bucket.
  if (labeled !== undefined && bucketOf(owner.uid) !== bucket && labeledBucketOf(labelsOf(owner)) !== bucket) return object
  return { ...object, metadata: { ...metadata, labels: { ...metadata.labels, [bucketLabel]: String(bucket) } } }
}

/** The buckets for which `includes` returns true. */
export function bucketsWhere(includes: (bucket: number) => boolean): number[] {
  const buckets: number[] = []
  for (let bucket = 0; bucket < bucketCount; bucket++) if (includes(bucket)) buckets.push(bucket)
  return buckets
}

/** The hash at which a bucket begins; the bucket after the last begins at 2^64. */
function boundary(bucket: number): string {
  if (bucket === bucketCount) return '0x10000000000000000'
  return `0x${(bucket * 2 ** (32 - bucketBits)).toString(16).padStart(8, '0')}00000000`
}
