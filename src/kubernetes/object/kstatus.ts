import { isJsonObject } from './json.ts'
import type { KubeObject } from './object.ts'

/** The status of an object. Current: its state matches its spec. Terminating: it is being deleted. */
export type KStatus = { status: 'Current' | 'InProgress' | 'Failed' | 'Terminating'; message: string }

type Fields = Record<string, unknown>
const current = (message: string): KStatus => ({ status: 'Current', message })
const inProgress = (message: string): KStatus => ({ status: 'InProgress', message })
const failed = (message: string): KStatus => ({ status: 'Failed', message })

/**
 * Computes the status of any object the way kstatus does (https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus).
 * An object of an unknown kind is Current unless a condition Ready, Reconciling or Stalled, or an old observedGeneration, shows otherwise.
 * An object that its controller has not reconciled yet is InProgress, and the message names that cause.
 */
export function computeKStatus(object: KubeObject): KStatus {
  const { metadata } = object
  if (metadata.deletionTimestamp !== undefined) return { status: 'Terminating', message: terminating(metadata.finalizers) }
  const status = fields(object.status)
  const observed = number(status.observedGeneration)
  if (observed !== undefined && metadata.generation !== undefined && observed < metadata.generation) {
    return inProgress(`its controller has not observed generation ${metadata.generation} yet, only ${observed}`)
  }
  const stalled = condition(status, 'Stalled')
  if (stalled?.status === 'True') return failed(formatCondition('Stalled', stalled))
  const reconciling = condition(status, 'Reconciling')
  if (reconciling?.status === 'True') return inProgress(formatCondition('Reconciling', reconciling))
  return byKind(object, fields(object.spec), status) ?? generic(status)
}

function byKind(object: KubeObject, spec: Fields, status: Fields): KStatus | undefined {
  switch (`${object.apiVersion.split('/').slice(0, -1).join('')}/${object.kind}`) {
    case 'apps/Deployment':
      return deployment(spec, status)
    case 'apps/StatefulSet':
      return statefulSet(spec, status)
    case 'apps/DaemonSet':
      return daemonSet(status)
    case 'apps/ReplicaSet':
      return replicaSet(spec, status)
    case 'batch/Job':
      return job(spec, status)
    case '/Pod':
      return pod(status)
    case '/PersistentVolumeClaim':
      return status.phase === 'Bound' ? current('Bound') : inProgress(`phase is ${text(status.phase) || 'not set'}, not Bound`)
    case '/Service':
      return service(spec, status)
    case '/Namespace':
      return current('Active')
    case 'apiextensions.k8s.io/CustomResourceDefinition':
      return crd(status)
    default:
      return undefined
  }
}

function deployment(spec: Fields, status: Fields): KStatus {
  const desired = number(spec.replicas) ?? 1
  if (status.observedGeneration === undefined) return notReconciled('Deployment')
  const progressing = condition(status, 'Progressing')
  if (progressing?.reason === 'ProgressDeadlineExceeded') return failed(formatCondition('Progressing', progressing))
  const updated = number(status.updatedReplicas) ?? 0
  const total = number(status.replicas) ?? 0
  const available = number(status.availableReplicas) ?? 0
  const ready = number(status.readyReplicas) ?? 0
  if (updated < desired) return inProgress(`${updated} of ${desired} replicas are updated`)
  if (total > updated) return inProgress(`${total - updated} old replicas are still running`)
  if (available < updated) return inProgress(`${available} of ${updated} replicas are available`)
  if (ready < desired) return inProgress(`${ready} of ${desired} replicas are ready`)
  const isAvailable = condition(status, 'Available')
  if (isAvailable && isAvailable.status !== 'True') return inProgress(formatCondition('Available', isAvailable))
  return current(`${ready} of ${desired} replicas are ready`)
}

function statefulSet(spec: Fields, status: Fields): KStatus {
  if (fields(spec.updateStrategy).type === 'OnDelete') return current('updates happen when Pods are deleted (OnDelete)')
  if (status.observedGeneration === undefined) return notReconciled('StatefulSet')
  const desired = number(spec.replicas) ?? 1
  const total = number(status.replicas) ?? 0
  const ready = number(status.readyReplicas) ?? 0
  const upToDate = number(status.currentReplicas) ?? 0
  if (total < desired) return inProgress(`${total} of ${desired} replicas exist`)
  if (ready < desired) return inProgress(`${ready} of ${desired} replicas are ready`)
  if (total > desired) return inProgress(`${total - desired} replicas are still to be deleted`)
  const partition = number(fields(fields(spec.updateStrategy).rollingUpdate).partition) ?? 0
  if (partition > 0) {
    const updated = number(status.updatedReplicas) ?? 0
    if (updated < desired - partition) return inProgress(`${updated} of ${desired - partition} replicas are updated`)
    return current(`the partition is rolled out, ${updated} replicas are updated`)
  }
  if (upToDate < desired) return inProgress(`${upToDate} of ${desired} replicas are at the current revision`)
  if (status.updateRevision !== undefined && status.currentRevision !== status.updateRevision)
    return inProgress('a new revision is rolling out')
  return current(`${ready} of ${desired} replicas are ready`)
}

function daemonSet(status: Fields): KStatus {
  const desired = number(status.desiredNumberScheduled)
  if (status.observedGeneration === undefined || desired === undefined) return notReconciled('DaemonSet')
  const updated = number(status.updatedNumberScheduled) ?? 0
  const available = number(status.numberAvailable) ?? 0
  const ready = number(status.numberReady) ?? 0
  if (updated < desired) return inProgress(`${updated} of ${desired} Pods are updated`)
  if (available < desired) return inProgress(`${available} of ${desired} Pods are available`)
  if (ready < desired) return inProgress(`${ready} of ${desired} Pods are ready`)
  return current(`${ready} of ${desired} Pods are ready`)
}

function replicaSet(spec: Fields, status: Fields): KStatus {
  if (status.observedGeneration === undefined) return notReconciled('ReplicaSet')
  const desired = number(spec.replicas) ?? 1
  const failure = condition(status, 'ReplicaFailure')
  if (failure?.status === 'True') return inProgress(formatCondition('ReplicaFailure', failure))
  const available = number(status.availableReplicas) ?? 0
  if (available < desired) return inProgress(`${available} of ${desired} replicas are available`)
  return current(`${available} of ${desired} replicas are available`)
}

/** As in kstatus, a Job is Current as soon as it is running. Only a failed Job is Failed. */
function job(spec: Fields, status: Fields): KStatus {
  const failure = condition(status, 'Failed')
  if (failure?.status === 'True') return failed(formatCondition('Failed', failure))
  const complete = condition(status, 'Complete')
  const succeeded = number(status.succeeded) ?? 0
  if (complete?.status === 'True') return current(`complete, ${succeeded} succeeded`)
  if (spec.suspend === true) return current('suspended')
  if (status.startTime === undefined) return notReconciled('Job')
  return current(`started: ${number(status.active) ?? 0} active, ${succeeded} succeeded, ${number(status.failed) ?? 0} failed`)
}

function pod(status: Fields): KStatus {
  const ready = condition(status, 'Ready')
  switch (status.phase) {
    case 'Succeeded':
      return current('the Pod has completed')
    case 'Failed':
      return failed(`the Pod has failed${text(status.message) ? `: ${text(status.message)}` : ''}`)
    case 'Running': {
      if (ready?.status === 'True') return current('the Pod is ready')
      const crash = waitingContainer(status)
      return crash === undefined ? inProgress('the Pod is running but not ready') : failed(crash)
    }
    case 'Pending': {
      const scheduled = condition(status, 'PodScheduled')
      if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable')
        return inProgress(formatCondition('PodScheduled', scheduled))
      return inProgress(waitingContainer(status) ?? 'the Pod is pending')
    }
    default:
      return notReconciled('Pod')
  }
}

function waitingContainer(status: Fields): string | undefined {
  for (const container of list(status.containerStatuses)) {
    const reason = text(fields(fields(container.state).waiting).reason)
    if (/BackOff|^Err|^Invalid/.test(reason)) return `container ${text(container.name)} is waiting: ${reason}`
  }
  return undefined
}

function service(spec: Fields, status: Fields): KStatus {
  if (spec.type !== 'LoadBalancer') return current('the Service is ready')
  const ingress = list(fields(status.loadBalancer).ingress)
  return ingress.length > 0 ? current('the load balancer has an address') : inProgress('the load balancer has no address yet')
}

function crd(status: Fields): KStatus {
  const rejected = condition(status, 'NamesAccepted')
  if (rejected?.status === 'False') return failed(formatCondition('NamesAccepted', rejected))
  const established = condition(status, 'Established')
  if (established?.status === 'True') return current('the kind is established')
  return inProgress(established ? formatCondition('Established', established) : 'the kind is not established yet')
}

function generic(status: Fields): KStatus {
  const ready = condition(status, 'Ready')
  if (ready && ready.status !== 'True') return inProgress(formatCondition('Ready', ready))
  return current('the object exists')
}

function notReconciled(kind: string): KStatus {
  return inProgress(`no controller has reconciled it yet; does this cluster run ${kind === 'Pod' ? 'Pods' : `${kind}s`}?`)
}

type ConditionLike = { status: string; reason: string; message: string }

function condition(status: Fields, type: string): ConditionLike | undefined {
  const found = list(status.conditions).find(each => each.type === type)
  return found && { status: text(found.status), reason: text(found.reason), message: text(found.message) }
}

function formatCondition(type: string, { status, reason, message }: ConditionLike): string {
  return [`${type} is ${status}`, reason, message].filter(part => part !== '').join(': ')
}

function terminating(finalizers: readonly string[] | undefined): string {
  return finalizers?.length ? `is being deleted, waiting for finalizers ${finalizers.join(', ')}` : 'is being deleted'
}

function fields(value: unknown): Fields {
  return isJsonObject(value) ? value : {}
}
function list(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}
function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
