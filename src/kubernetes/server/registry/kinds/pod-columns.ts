import { isJsonObject, type KubeObject } from '../../../object/index.ts'
import { formatAge } from '../human-duration.ts'
import type { PrinterColumn } from '../printer-columns.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { type Fields, fieldsOf, intOf, itemsOf, textOf } from '../type-rules/index.ts'

/** The columns of `kubectl get pods`. */
export const podColumns: readonly PrinterColumn[] = [
  nameColumn,
  column('Ready', 'The aggregate readiness state of this pod for accepting traffic.', pod => summarize(pod).ready),
  column('Status', 'The aggregate status of the containers in this pod.', pod => summarize(pod).reason),
  column(
    'Restarts',
    'The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.',
    (pod, nowMs) => {
      const { restarts, lastRestart } = summarize(pod)
      return restarts > 0 && lastRestart !== '' ? `${restarts} (${formatAge(lastRestart, nowMs)} ago)` : String(restarts)
    },
  ),
  ageColumn,
  column(
    'IP',
    'podIP address allocated to the pod. Routable at least within the cluster. Empty if not yet allocated.',
    ({ status }) => orNone(itemsOf(fieldsOf(status).podIPs)[0]?.ip),
    1,
  ),
  column(
    'Node',
    'NodeName indicates in which node this pod is scheduled. If empty, this pod is a candidate for scheduling by the scheduler defined in schedulerName. Once this field is set, the kubelet for this node becomes responsible for the lifecycle of this pod. This field should not be used to express a desire for the pod to be scheduled on a specific node. https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename',
    ({ spec }) => orNone(fieldsOf(spec).nodeName),
    1,
  ),
  column(
    'Nominated Node',
    'nominatedNodeName is set only when this pod preempts other pods on the node, but it cannot be scheduled right away as preemption victims receive their graceful termination periods. This field does not guarantee that the pod will be scheduled on this node. Scheduler may decide to place the pod elsewhere if other nodes become available sooner. Scheduler may also decide to give the resources on this node to a higher priority pod that is created after preemption. As a result, this field may be different than PodSpec.nodeName when the pod is scheduled.',
    ({ status }) => orNone(fieldsOf(status).nominatedNodeName),
    1,
  ),
  column(
    'Readiness Gates',
    'If specified, all readiness gates will be evaluated for pod readiness. A pod is ready when all its containers are ready AND all conditions specified in the readiness gates have status equal to "True" More info: https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates',
    readinessGates,
    1,
  ),
]

const orNone = (value: unknown): string => textOf(value) || '<none>'

function readinessGates({ spec, status }: KubeObject): string {
  const gates = itemsOf(fieldsOf(spec).readinessGates)
  if (gates.length === 0) return '<none>'
  const conditions = itemsOf(fieldsOf(status).conditions)
  const satisfied = gates.filter(gate => conditions.find(condition => condition.type === gate.conditionType)?.status === 'True')
  return `${satisfied.length}/${gates.length}`
}

type Summary = { ready: string; reason: string; restarts: number; lastRestart: string }

/** The state of the containers of a Pod, as `kubectl get` prints it. */
function summarize({ spec, status, metadata }: KubeObject): Summary {
  const { phase, reason: podReason, conditions, initContainerStatuses, containerStatuses } = fieldsOf(status)
  const initContainers = itemsOf(fieldsOf(spec).initContainers)
  const sidecars = new Set(initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name))
  const count = { total: itemsOf(fieldsOf(spec).containers).length + sidecars.size, ready: 0, restarts: 0, lastRestart: '' }
  let reason = textOf(podReason) || textOf(phase)
  if (itemsOf(conditions).some(({ type, reason: conditionReason }) => type === 'PodScheduled' && conditionReason === 'SchedulingGated')) {
    reason = 'SchedulingGated'
  }
  const initializing = initReason(itemsOf(initContainerStatuses), sidecars, initContainers.length, count)
  if (initializing !== undefined) reason = initializing
  const isInitialized = itemsOf(conditions).some(
    ({ type, status: conditionStatus }) => type === 'Initialized' && conditionStatus === 'True',
  )
  if (initializing === undefined || isInitialized) reason = containerReason(itemsOf(containerStatuses), itemsOf(conditions), reason, count)
  const isTerminated = phase === 'Succeeded' || phase === 'Failed'
  if (metadata.deletionTimestamp && podReason === 'NodeLost') reason = 'Unknown'
  else if (metadata.deletionTimestamp && !isTerminated) reason = 'Terminating'
  return { ready: `${count.ready}/${count.total}`, reason, restarts: count.restarts, lastRestart: count.lastRestart }
}

type Count = { total: number; ready: number; restarts: number; lastRestart: string }

function countRestarts(status: Fields, count: Count): void {
  count.restarts += intOf(status.restartCount)
  const finishedAt = textOf(fieldsOf(fieldsOf(status.lastState).terminated).finishedAt)
  if (finishedAt > count.lastRestart) count.lastRestart = finishedAt
}

/** Which init container the Pod waits for; undefined if all are done. Only restarts of sidecars are counted afterwards. */
function initReason(statuses: Fields[], sidecars: ReadonlySet<unknown>, total: number, count: Count): string | undefined {
  const all: Count = { ...count }
  for (const [index, status] of statuses.entries()) {
    countRestarts(status, all)
    const isSidecar = sidecars.has(status.name)
    if (isSidecar) countRestarts(status, count)
    const { terminated, waiting } = fieldsOf(status.state)
    if (isJsonObject(terminated) && intOf(terminated.exitCode) === 0) continue
    if (isSidecar && status.started === true) {
      if (status.ready === true) count.ready++
      continue
    }
    count.restarts = all.restarts
    count.lastRestart = all.lastRestart
    if (isJsonObject(terminated)) return `Init:${terminationReason(terminated)}`
    const { reason } = fieldsOf(waiting)
    return textOf(reason) !== '' && reason !== 'PodInitializing' ? `Init:${reason}` : `Init:${index}/${total}`
  }
  return undefined
}

function containerReason(statuses: Fields[], conditions: Fields[], initialReason: string, count: Count): string {
  let reason = initialReason
  let failure = ''
  let isRunning = false
  for (const status of statuses.toReversed()) {
    countRestarts(status, count)
    const { waiting, terminated, running } = fieldsOf(status.state)
    if (textOf(fieldsOf(waiting).reason) !== '') reason = textOf(fieldsOf(waiting).reason)
    else if (isJsonObject(terminated)) {
      reason = terminationReason(terminated)
      if (intOf(terminated.exitCode) !== 0) failure = reason
    } else if (status.ready === true && running !== undefined) {
      isRunning = true
      count.ready++
    }
  }
  if (reason !== 'Completed') return reason
  if (isRunning && conditions.some(({ type, status }) => type === 'Ready' && status === 'True')) return 'Running'
  return failure || (isRunning ? 'NotReady' : reason)
}

function terminationReason({ reason, signal, exitCode }: Fields): string {
  if (textOf(reason) !== '') return textOf(reason)
  return intOf(signal) !== 0 ? `Signal:${signal}` : `ExitCode:${intOf(exitCode)}`
}
