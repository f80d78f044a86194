/**
 * @module kubernetes/controller/sharding: many active replicas of an operator, one owner per key. Start reading at `ring.ts`, then
 * `decide-ring.ts` and `member-core.ts` (what is sent), `ring-member.ts` (what a process does) and `bucket-feeds.ts` (what it watches).
 * In: the Leases of the members and of the ring. Out: which buckets this process may work on at this instant, with a fencing token.
 * Deciders are pure; time is passed in. Not done here: reconciling (`controller.ts`), what a kind means.
 */
export {
  type Buckets,
  bucketCount,
  bucketLabel,
  bucketLabelSelectorOf,
  bucketOf,
  bucketRangesOf,
  labeledBucketOf,
  shardSelectorOf,
} from './bucket.ts'
export { type LabelOwnedOptions, type LabelOwnedResult, labelOwnedObjects } from './label-owned-objects.ts'
export { ringLabel } from './lease-names.ts'
export { NotOwnerError } from './not-owner-error.ts'
export type { ShardOptions } from './options.ts'
export { isAtRest, readShards, type ShardMember, type ShardView, shardViewOf } from './shard-view.ts'
export type { ShardCounts } from './shards.ts'
