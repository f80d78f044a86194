import { labels } from '../../../../api/index.ts'
import type { Pod } from './pod.ts'
import type { WorkerPodState } from './worker-pod-state.ts'

/** Failed Pods are kept longer than succeeded ones, so that their logs can be read. */
const keepSucceededMs = 60_000
const keepFailedMs = 10 * 60_000
/** For each pool; the newest are kept. */
const maxKeptFailed = 10

export type PodGarbageDecision = {
  /** Pods to delete. */
  readonly remove: readonly Pod[]
  /** Time until the next Pod is due; undefined if none will be. */
  readonly requeueAfterMs: number | undefined
}

/** Decides which Pods have ended long enough ago, or are too many. */
export function decidePodGarbage(pods: Iterable<{ readonly pod: Pod; readonly state: WorkerPodState }>, nowMs: number): PodGarbageDecision {
  const remove: Pod[] = []
  let requeueAfterMs: number | undefined
  const failedOf = new Map<string, { pod: Pod; endedMs: number }[]>()
  const removeAt = (pod: Pod, untilMs: number) => {
    if (nowMs >= untilMs) remove.push(pod)
    else requeueAfterMs = Math.min(requeueAfterMs ?? Number.POSITIVE_INFINITY, untilMs - nowMs)
  }
  for (const { pod, state } of pods) {
    if (state.state !== 'ended' || pod.metadata.deletionTimestamp) continue
    const { endedMs } = state
    if (!state.failure) removeAt(pod, endedMs + keepSucceededMs)
    else {
      const pool = pod.metadata.labels?.[labels.pool] ?? ''
      const others = failedOf.get(pool)
      if (others) others.push({ pod, endedMs })
      else failedOf.set(pool, [{ pod, endedMs }])
    }
  }
  for (const failed of failedOf.values()) {
    failed.sort((a, b) => b.endedMs - a.endedMs)
    for (const [index, { pod, endedMs }] of failed.entries()) removeAt(pod, index < maxKeptFailed ? endedMs + keepFailedMs : 0)
  }
  return { remove, requeueAfterMs }
}
