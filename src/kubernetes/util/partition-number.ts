import { readRevision } from './revision.ts'

/** Versions of the embedded server begin with milliseconds since 2026; the revisions of etcd, which other servers use, count writes. */
const smallestOfEmbedded = 1e13

/** The number of the partition that has assigned a resource version. */
export const partitionNumberOf = (version: string): number => readRevision(Number(version)).partition

/** Whether two objects, read through one server, are in different partitions behind it. */
export const areInDifferentPartitions = (version: string, other: string | undefined): boolean =>
  other !== undefined &&
  Number(version) > smallestOfEmbedded &&
  Number(other) > smallestOfEmbedded &&
  partitionNumberOf(version) !== partitionNumberOf(other)
