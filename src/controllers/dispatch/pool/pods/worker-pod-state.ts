import type { ExitFailure, LossReason } from '../pool-driver.ts'
import type { StartFailure } from '../start-state.ts'
import { crashOf } from '../worker-crash.ts'
import type { ContainerState, Pod } from './pod.ts'

/** `terminating`: it is being deleted and may still run; with the cause, if it is none of Oarlock's. `ended`: all its containers have stopped. */
export type WorkerPodState =
  | { readonly state: 'starting'; readonly failure: StartFailure | undefined }
  | { readonly state: 'running' }
  | { readonly state: 'terminating'; readonly failure: ExitFailure | undefined }
  | { readonly state: 'ended'; readonly exitCode: number | undefined; readonly failure: ExitFailure | undefined; readonly endedMs: number }

/** Reasons of the kubelet's image manager: k8s.io/kubernetes/pkg/kubelet/images/types.go. */
const imageReasons = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
])
/** Reasons of its container manager: pkg/kubelet/kuberuntime/kuberuntime_container.go and pkg/kubelet/container/sync_result.go. */
const containerReasons = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError', 'PreCreateHookError'])

/** Derives the state of a worker from the status of its Pod, as the kubelet and the scheduler write it. */
export function workerPodState({ metadata, status = {} }: Pod, container: string): WorkerPodState {
  const { phase = 'Pending', containerStatuses = [], initContainerStatuses = [], conditions = [] } = status
  const main = (containerStatuses.find(({ name }) => name === container) ?? containerStatuses[0])?.state
  if (phase === 'Succeeded' || phase === 'Failed') {
    const states = [main, ...[...initContainerStatuses, ...containerStatuses].map(({ state }) => state)]
    const terminated = states
      .map(state => state?.terminated)
      .find(end => end !== undefined && (phase === 'Succeeded' || end.exitCode !== 0))
    const endedMs = Date.parse(terminated?.finishedAt ?? conditions.find(({ type }) => type === 'Ready')?.lastTransitionTime ?? '')
    return {
      state: 'ended',
      exitCode: phase === 'Succeeded' ? 0 : terminated?.exitCode,
      failure:
        phase === 'Succeeded'
          ? undefined
          : { ...failureOf(metadata, status, terminated), ...(haveEnded(containerStatuses) && { isGone: true }) },
      endedMs: Number.isNaN(endedMs) ? Date.parse(metadata.creationTimestamp) : endedMs,
    }
  }
  if (metadata.deletionTimestamp) return { state: 'terminating', failure: disruptionOf(metadata, status) }
  if (main?.running) return { state: 'running' }
  const waiting = [...initContainerStatuses, ...containerStatuses].map(({ state }) => state?.waiting).find(isStartFailure)
  if (waiting) {
    const reason = imageReasons.has(waiting.reason ?? '') ? 'ImagePullFailed' : 'ContainerConfigError'
    return { state: 'starting', failure: { reason, message: `${podOf(metadata)}: ${formatReason(waiting)}` } }
  }
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status === 'False') {
    return { state: 'starting', failure: { reason: 'Unschedulable', message: `${podOf(metadata)}: ${formatReason(scheduled)}` } }
  }
  return { state: 'starting', failure: undefined }
}

/** Whether the kubelet has reported the end of all containers. Others set phase Failed too, when the node does not report. */
const haveEnded = (statuses: readonly { state?: ContainerState }[]) =>
  statuses.length > 0 && statuses.every(({ state }) => state?.terminated !== undefined)

const isStartFailure = (waiting: ContainerState['waiting']) =>
  waiting !== undefined && (imageReasons.has(waiting.reason ?? '') || containerReasons.has(waiting.reason ?? ''))

function failureOf(metadata: Pod['metadata'], status: NonNullable<Pod['status']>, terminated: ContainerState['terminated']): ExitFailure {
  const disruption = disruptionOf(metadata, status)
  if (disruption) return disruption
  if (!terminated) return { reason: 'CrashedOnStartup', message: `${podOf(metadata)} failed: ${formatReason(status)}` }
  const { exitCode, reason } = terminated
  const message = `${podOf(metadata)} exited with code ${exitCode}: ${formatReason(terminated)}`
  const isStopped = metadata.deletionTimestamp !== undefined
  const crash = crashOf({ exitCode, signal: undefined, isStopped, hasOomKill: reason === 'OOMKilled' })
  return { reason: 'CrashedOnStartup', message, ...(crash && { crash: { reason: crash, message } }) }
}

/**
 * Who ended the Pod, if it was a kubelet, the scheduler, a taint or a user of the Eviction API; undefined if not.
 * https://kubernetes.io/docs/concepts/workloads/pods/disruptions/
 */
function disruptionOf(metadata: Pod['metadata'], status: NonNullable<Pod['status']>): ExitFailure | undefined {
  const target = status.conditions?.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True')
  const reason = lossReasonOf(status, target?.reason)
  if (reason === undefined) return undefined
  // The kubelet reports which resource is short; the condition only that it was the kubelet.
  const message = `${podOf(metadata)}: ${formatReason(status.reason === undefined ? (target ?? status) : status)}`
  return { reason, message, loss: { reason, message } }
}

function lossReasonOf({ reason, conditions = [] }: NonNullable<Pod['status']>, disruption: string | undefined): LossReason | undefined {
  const isTrue = (type: string) => conditions.find(condition => condition.type === type)?.status === 'True'
  if (reason === 'Evicted') return 'Evicted'
  // Of the node controller, and of a kubelet whose machine shuts down.
  if (reason === 'NodeLost' || reason === 'NodeShutdown' || reason === 'Terminated' || disruption === 'DeletionByPodGC') return 'NodeLost'
  if (disruption === 'PreemptionByScheduler' || reason === 'Preempting') return 'Preempted'
  // The node controller sets Ready of the Pods of an unreachable node to False; a kubelet would change ContainersReady, too.
  if (disruption === 'DeletionByTaintManager' && !isTrue('Ready') && isTrue('ContainersReady')) return 'NodeLost'
  return disruption === undefined ? undefined : 'Evicted'
}

const podOf = ({ namespace, name }: Pod['metadata']) => `Pod ${namespace}/${name}`

const maxMessage = 500

function formatReason({ reason, message }: { reason?: string; message?: string }): string {
  return ([reason, message].filter(Boolean).join(': ') || 'no reason given').slice(0, maxMessage)
}
