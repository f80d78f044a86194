import { hasRegistered, type Worker } from '../../../../api/index.ts'
import type { ExitFailure } from '../pool-driver.ts'
import { failedStatus, pendingStatus, type WorkerReport } from '../worker-report.ts'
import type { Pod } from './pod.ts'
import type { WorkerPodState } from './worker-pod-state.ts'

/** Failed Pods are kept longer than succeeded ones, so that their logs can be read. */
const keepSucceededMs = 60_000
const keepFailedMs = 10 * 60_000
/** For each pool; the newest are kept. */
const maxKeptFailed = 10
/** The garbage collector of the server deletes the Pod of a deleted Worker; if it has not by then, it is deleted here. */
const collectedWithinMs = 60_000

export type WorkerPodsInput = {
  /** All Workers that are Pods, registered or not. */
  readonly workers: readonly Worker[]
  readonly pods: readonly { readonly pod: Pod; readonly state: WorkerPodState }[]
  /** Workers whose Pod was deleted before they registered, with the cause. */
  readonly deleted: ReadonlyMap<string, ExitFailure>
  /** Whether the pool exists. Registered workers of a deleted one are drained (`../decide-pools.ts`); the others are deleted here. */
  hasPool(name: string): boolean
  readonly nowMs: number
}

export type WorkerPodsDecision = {
  /** Workers without a Pod: the process that created them ended before it created the Pod. */
  readonly create: readonly Worker[]
  /** What `kubectl get workers` shows of a Pod that does not start. Null removes a field. */
  readonly report: readonly { readonly worker: Worker; readonly status: WorkerReport }[]
  /** Workers to delete, and with them their Pods. */
  readonly remove: readonly Worker[]
  /** Pods whose Worker was deleted some time ago. */
  readonly removePods: readonly Pod[]
  /** Time until the next decision is due; undefined if none is. */
  readonly requeueAfterMs: number | undefined
}

/**
 * Decides what to do for the Workers that are Pods until they register, and after they have ended. A Worker is created before its Pod and owns it,
 * so that it is seen while the Pod does not start, and is deleted together with it.
 */
export function decideWorkerPods({ workers, pods, deleted, hasPool, nowMs }: WorkerPodsInput): WorkerPodsDecision {
  const create: Worker[] = []
  const report: { worker: Worker; status: WorkerReport }[] = []
  const remove: Worker[] = []
  const removePods: Pod[] = []
  let requeueAfterMs: number | undefined
  const isDue = (untilMs: number) => {
    if (nowMs < untilMs) requeueAfterMs = Math.min(requeueAfterMs ?? Number.POSITIVE_INFINITY, untilMs - nowMs)
    return nowMs >= untilMs
  }
  const podOf = new Map(pods.map(each => [each.pod.metadata.name, each]))
  const names = new Set(workers.map(({ metadata }) => metadata.name))
  /** By pool: ended Workers whose logs or reasons may be of use. */
  const failed = new Map<string, { worker: Worker; endedMs: number }[]>()

  for (const worker of workers) {
    const { name, creationTimestamp, deletionTimestamp } = worker.metadata
    if (deletionTimestamp !== undefined || hasRegistered(worker)) continue
    if (!hasPool(worker.spec.pool)) {
      remove.push(worker)
      continue
    }
    const found = podOf.get(name)
    const state = found?.state
    if (worker.status?.phase === 'Failed') {
      const endedMs = state?.state === 'ended' ? state.endedMs : Date.parse(creationTimestamp)
      const others = failed.get(worker.spec.pool)
      if (others) others.push({ worker, endedMs })
      else failed.set(worker.spec.pool, [{ worker, endedMs }])
    } else if (!found) {
      const cause = deleted.get(name)
      if (cause) report.push({ worker, status: failedStatus(cause, undefined) })
      else create.push(worker)
    } else if (state?.state === 'ended') {
      if (state.failure) report.push({ worker, status: failedStatus(state.failure, state.exitCode) })
      else if (isDue(state.endedMs + keepSucceededMs)) remove.push(worker)
    } else if (state?.state !== 'terminating') {
      const status = pendingStatus(state?.state === 'starting' ? state.failure : undefined)
      // Messages of a failing start alternate while the kubelet retries: only another reason is reported.
      if ((worker.status?.reason ?? null) !== status.reason) report.push({ worker, status })
    }
  }
  for (const ended of failed.values()) {
    ended.sort((a, b) => b.endedMs - a.endedMs)
    for (const [index, { worker, endedMs }] of ended.entries())
      if (isDue(index < maxKeptFailed ? endedMs + keepFailedMs : 0)) remove.push(worker)
  }
  for (const { pod, state } of pods) {
    if (names.has(pod.metadata.name) || state.state !== 'ended' || pod.metadata.deletionTimestamp !== undefined) continue
    if (isDue(state.endedMs + collectedWithinMs)) removePods.push(pod)
  }
  return { create, report, remove, removePods, requeueAfterMs }
}
