import { setTimeout as sleep } from 'node:timers/promises'
import { type PartitionObject, partitionResource } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { type Condition, findCondition, setCondition } from '../../kubernetes/object/index.ts'
import { compareKinds, readKinds } from './compare-kinds.ts'

const defaults = { intervalMs: 30_000, confirmAfterMs: 5_000 }

export type ReportKindsOptions = {
  readonly partition: string
  readonly home: Client
  readonly local: Client
  readonly signal: AbortSignal
  readonly log: Pick<Log, 'warn'>
  /** Default 30,000. */
  readonly intervalMs?: number
  /** A difference that is gone after this is none: a definition that has changed at home is copied within moments. Default 5,000. */
  readonly confirmAfterMs?: number
}

/** Reports in the condition `KindsMatch` of the Partition whether it serves the kinds of home, every 30 seconds until `signal` aborts. */
export async function reportKinds(options: ReportKindsOptions): Promise<void> {
  const { signal, log, intervalMs = defaults.intervalMs } = options
  while (!signal.aborted) {
    try {
      await reportOnce(options)
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'the kinds of this partition are not compared with those of home')
    }
    await pause(intervalMs, signal)
  }
}

async function reportOnce({
  partition,
  home,
  local,
  signal,
  log,
  confirmAfterMs = defaults.confirmAfterMs,
}: ReportKindsOptions): Promise<void> {
  const compare = async () => compareKinds(...(await Promise.all([readKinds(home), readKinds(local)])))
  let difference = await compare()
  if (difference !== undefined) {
    await pause(confirmAfterMs, signal)
    difference = await compare()
  }
  const partitions = home.resource(partitionResource)
  const { status, metadata } = (await partitions.get(partition)) as PartitionObject
  const before = findCondition(status?.conditions, 'KindsMatch')
  const update =
    difference === undefined
      ? { status: 'True' as const, reason: 'Compared', message: 'serves the kinds of home' }
      : { status: 'False' as const, reason: 'KindsDiffer', message: difference }
  const { generation: observedGeneration = 1 } = metadata
  if (before?.status === update.status && before.message === update.message && before.observedGeneration === observedGeneration) return
  if (difference !== undefined) log.warn({ partition, difference }, 'this partition does not serve the kinds of home')
  const conditions: Condition[] = setCondition(status?.conditions, { type: 'KindsMatch', ...update, observedGeneration }, Date.now())
  await partitions.patchStatus(partition, { status: { conditions, observedGeneration } })
}

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal, ref: false }).catch(() => {})
