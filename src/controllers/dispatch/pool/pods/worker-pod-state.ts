import type { ExitFailure } from '../pool-driver.ts'
import type { StartFailure } from '../start-state.ts'
import { crashOf } from '../worker-crash.ts'
import type { ContainerState, Pod } from './pod.ts'

/** `terminating`: it is being deleted and may still run. `ended`: all its containers have stopped. */
export type WorkerPodState =
  | { readonly state: 'starting'; readonly failure: StartFailure | undefined }
  | { readonly state: 'running' | 'terminating' }
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
      failure: phase === 'Succeeded' ? undefined : failureOf(metadata, status, terminated),
      endedMs: Number.isNaN(endedMs) ? Date.parse(metadata.creationTimestamp) : endedMs,
    }
  }
  if (metadata.deletionTimestamp) return { state: 'terminating' }
  if (main?.running) return { state: 'running' }
  const waiting = [...initContainerStatuses, ...containerStatuses].map(({ state }) => state?.waiting).find(isStartFailure)
  if (waiting) {
    const reason = imageReasons.has(waiting.reason ?? '') ? 'ImagePullFailed' : 'ContainerConfigError'
    return { state: 'starting', failure: { reason, message: `pod ${metadata.name}: ${formatReason(waiting)}` } }
  }
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status === 'False') {
    return { state: 'starting', failure: { reason: 'Unschedulable', message: `pod ${metadata.name}: ${formatReason(scheduled)}` } }
  }
  return { state: 'starting', failure: undefined }
}

const isStartFailure = (waiting: ContainerState['waiting']) =>
  waiting !== undefined && (imageReasons.has(waiting.reason ?? '') || containerReasons.has(waiting.reason ?? ''))

function failureOf(
  { name: pod, deletionTimestamp }: Pod['metadata'],
  status: NonNullable<Pod['status']>,
  terminated: ContainerState['terminated'],
): ExitFailure {
  const isDeleted = deletionTimestamp !== undefined
  // Evicted by the kubelet, by a taint or by preemption: https://kubernetes.io/docs/concepts/workloads/pods/disruptions/
  const disrupted = status.conditions?.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True')
  if (status.reason === 'Evicted' || disrupted) return { reason: 'Evicted', message: `pod ${pod}: ${formatReason(disrupted ?? status)}` }
  if (!terminated) return { reason: 'CrashedOnStartup', message: `pod ${pod} failed: ${formatReason(status)}` }
  const { exitCode, reason } = terminated
  const message = `pod ${pod} exited with code ${exitCode}: ${formatReason(terminated)}`
  const crash = crashOf({ exitCode, signal: undefined, isStopped: isDeleted, hasOomKill: reason === 'OOMKilled' })
  return { reason: 'CrashedOnStartup', message, ...(crash && { crash: { reason: crash, message } }) }
}

const maxMessage = 500

function formatReason({ reason, message }: { reason?: string; message?: string }): string {
  return ([reason, message].filter(Boolean).join(': ') || 'no reason given').slice(0, maxMessage)
}
