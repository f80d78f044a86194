import { textHash } from '../kubernetes/util/index.ts'

/** Into how many buckets workers are divided, so that a dispatcher can watch a part of them. The number is part of stored labels. */
export const workerBucketCount = 64

/** The value of the label `oarlock.dev/worker-bucket` of a Worker and its Lease: `0` to `63`, by the hash of the name. The embedded server sets it. */
export const workerBucketOf = (name: string): string => String(textHash(name) % workerBucketCount)
