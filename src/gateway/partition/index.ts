/**
 * @module gateway/partition: the connection to one partition. Start reading at `partition.ts`.
 * In: a request and its user. Out: the answer of the partition, which is passed on as it is; the highest resource version that it has named.
 * Not here: which partition is asked (`../routing/`).
 */

export { discardBody } from './discard-body.ts'
export { HomeOrCopy } from './home-or-copy.ts'
export { isKnownVersion } from './known-version.ts'
export { Partition, PartitionMovedError, type PartitionOptions } from './partition.ts'
export type { UpgradeAnswer } from './partition-upgrade.ts'
export { SeenVersion } from './seen-version.ts'
export { sendAnswer, sendStatus } from './send-answer.ts'
export { WholeBody } from './short-request.ts'
