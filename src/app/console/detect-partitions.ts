import { partitionResource } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'

export type DetectPartitionsOptions = {
  readonly client: Client
  readonly log: Log
  /** Default a minute. */
  readonly intervalMs?: number
  /** Called once, when the kind Partition can be listed. */
  readonly onDetected: () => void
}

/**
 * Waits until the API server serves the kind Partition, which may be installed while this process runs: before, there is nothing to watch.
 * An error other than the missing kind is logged once. Returns the function that ends it.
 */
export function detectPartitions({ client, log, intervalMs = 60_000, onDetected }: DetectPartitionsOptions): () => void {
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let isReported = false
  const detect = async () => {
    const error = await client
      .resource(partitionResource)
      .list({ limit: 1 })
      .then(
        () => undefined,
        (reason: unknown) => reason,
      )
    if (isClosed) return
    if (error === undefined) return onDetected()
    if (!isReported && !isReason(error, 'NotFound')) {
      isReported = true
      log.warn({ err: error }, 'the console does not show partitions: it cannot list them')
    }
    timer = setTimeout(() => void detect(), intervalMs).unref()
  }
  void detect()
  return () => {
    isClosed = true
    clearTimeout(timer)
  }
}
