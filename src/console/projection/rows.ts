import {
  isEnded,
  labels,
  phaseOf,
  type Run,
  type Stack,
  stackMessage,
  stackState,
  type Tenant,
  type Worker,
  type WorkerPool,
} from '../../api/index.ts'
import type { LeaseBody } from '../../kubernetes/client/index.ts'
import { ringLabel } from '../../kubernetes/controller/index.ts'
import { findCondition, isConditionTrue, type KubeObject } from '../../kubernetes/object/index.ts'
import type { ControllerRow, PartitionRow, PlanCounts, PoolRow, RunRow, StackRow, TenantRow, WorkerRow } from '../protocol/index.ts'

/** Longer messages end in `…`: the page of the object shows all of them. */
const maxMessageLength = 300

const partitionLabel = 'oarlock.dev/partition'

/** `active`: the Run of the Stack that has not ended. */
export function stackRow(stack: Stack, active: RunRow | undefined, tenant: string | undefined): StackRow {
  const { metadata, spec, status } = stack
  const { namespace = '', name } = metadata
  const state = stackState(stack)
  const { reason, message } = stackMessage(stack)
  const { plan, lastRun } = status ?? {}
  const awaits = isConditionTrue(status?.conditions, 'AwaitingApproval') && plan !== undefined
  const since = sinceOf(stack, state)
  return {
    key: `${namespace}/${name}`,
    namespace,
    name,
    ...(tenant !== undefined && { tenant }),
    engine: spec.engine,
    pool: spec.pool ?? 'default',
    state,
    reason,
    message: shortened(message),
    ...(status?.resources !== undefined && { resources: status.resources }),
    ...(active && { activeRun: active.name, phase: active.phase, ...(active.progress && { progress: active.progress }) }),
    ...(awaits && { plan: { ...countsOf(plan), digest: plan.digest, runName: plan.runName } }),
    suspended: spec.suspend === true,
    ...(isConditionTrue(status?.conditions, 'Stalled') && { isStalled: true }),
    labels: metadata.labels ?? {},
    createdMs: Date.parse(metadata.creationTimestamp),
    ...timeOf('finishedMs', lastRun?.finishedAt),
    ...timeOf('nextRunMs', status?.nextRunAt),
    ...timeOf('sinceMs', since),
  }
}

/** When the condition changed that the state follows from. */
function sinceOf({ metadata, status }: Stack, state: StackRow['state']): string | undefined {
  const changed = (type: string) => findCondition(status?.conditions, type)?.lastTransitionTime
  if (state === 'Deleting') return metadata.deletionTimestamp
  if (state === 'AwaitingApproval') return changed('AwaitingApproval')
  if (state === 'PlanRejected') return status?.rejection?.at
  if (state === 'Failed' || state === 'EngineNotFound') return status?.failingSince ?? changed('Stalled')
  if (state === 'Failing') return status?.failingSince
  return changed('Ready') ?? metadata.creationTimestamp
}

export function runRow({ metadata, spec, status }: Run, tenant: string | undefined): RunRow {
  const { namespace = '', name } = metadata
  const { reason, message, progress, plan, changed, queuePosition } = status ?? {}
  return {
    key: `${namespace}/${name}`,
    namespace,
    name,
    stack: spec.stackRef.name,
    epoch: spec.epoch,
    ...((spec.tenant?.name ?? tenant) !== undefined && { tenant: spec.tenant?.name ?? tenant }),
    engine: spec.stack.engine,
    type: spec.type,
    trigger: spec.reason,
    phase: phaseOf({ spec, status }),
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && { message: shortened(message) }),
    pool: spec.pool,
    ...(spec.workerName !== undefined && { worker: spec.workerName }),
    ...(progress && !isEnded({ status }) && { progress: { done: progress.done, total: progress.total } }),
    ...(plan && { plan: countsOf(plan) }),
    ...(changed !== undefined && { changed }),
    ...(spec.approvedPlan && { planRun: spec.approvedPlan.runName }),
    ...(queuePosition !== undefined && { queuePosition }),
    createdMs: Date.parse(spec.queuedSince ?? metadata.creationTimestamp),
    ...timeOf('startedMs', status?.startedAt),
    ...timeOf('finishedMs', status?.finishedAt),
  }
}

export function workerRow({ metadata, spec, status }: Worker): WorkerRow {
  const { reason, host, version } = status ?? {}
  const partition = metadata.labels?.[partitionLabel]
  return {
    key: metadata.name,
    name: metadata.name,
    pool: spec.pool,
    phase: status?.phase ?? 'Pending',
    ...(reason !== undefined && { reason }),
    ...(host !== undefined && { host }),
    ...(version !== undefined && { version }),
    slots: spec.slots ?? 1,
    runs: status?.runs ?? [],
    cordoned: spec.cordon === true,
    ...(partition !== undefined && { partition }),
    createdMs: Date.parse(metadata.creationTimestamp),
  }
}

export function poolRow({ metadata, spec, status }: WorkerPool): PoolRow {
  const { min = 0, max = 0, mode, lifecycle = 'OneShot' } = spec
  const ready = findCondition(status?.conditions, 'Ready')
  return {
    key: metadata.name,
    name: metadata.name,
    mode,
    lifecycle,
    min,
    max,
    desired: status?.desired ?? 0,
    workers: status?.workers ?? 0,
    busy: status?.busy ?? 0,
    queued: status?.queued ?? 0,
    ready: ready?.status === 'True',
    ...reasonOf(ready),
  }
}

/** Its Stacks are counted where the table is shown: they come and go without a change of the Tenant. */
export function tenantRow({ metadata, spec, status }: Tenant): TenantRow {
  const ready = findCondition(status?.conditions, 'Ready')
  const partition = metadata.labels?.[partitionLabel]
  return {
    key: metadata.name,
    name: metadata.name,
    weight: spec.weight ?? 1,
    running: status?.running ?? 0,
    ...(spec.limits?.maxRunning !== undefined && { maxRunning: spec.limits.maxRunning }),
    queued: status?.queued ?? 0,
    stacks: 0,
    namespaces: status?.namespaces ?? 0,
    ...(partition !== undefined && { partition }),
    ready: ready?.status === 'True',
    ...reasonOf(ready),
  }
}

/** Undefined for the Lease of a worker, and in a ring for one without a holder. @param member of a ring: the buckets that it holds. */
export function controllerRow({ metadata, spec }: KubeObject<LeaseBody>, member?: { readonly buckets: number }): ControllerRow | undefined {
  const ring = metadata.labels?.[ringLabel]
  if (metadata.labels?.[labels.pool] !== undefined || !spec || (ring !== undefined && !spec.holderIdentity)) return undefined
  return {
    ...(ring !== undefined && { ring }),
    ...member,
    key: `${metadata.namespace}/${metadata.name}`,
    name: metadata.name,
    holder: spec.holderIdentity ?? '',
    renewedMs: Date.parse(spec.renewTime ?? metadata.creationTimestamp),
    leaseDurationMs: (spec.leaseDurationSeconds ?? 0) * 1_000,
    transitions: spec.leaseTransitions ?? 0,
  }
}

export type PartitionBody = {
  readonly spec: { readonly number: number; readonly server?: string; readonly roles: readonly string[] }
  readonly status?: { readonly conditions?: NonNullable<Stack['status']>['conditions'] }
}

export function partitionRow({ metadata, spec, status }: KubeObject<PartitionBody>): PartitionRow {
  const match = findCondition(status?.conditions, 'KindsMatch')
  return {
    key: metadata.name,
    name: metadata.name,
    number: spec.number,
    roles: spec.roles,
    server: spec.server ?? '',
    ready: match === undefined || match.status === 'True',
    ...(match?.status !== 'True' && reasonOf(match)),
  }
}

const countsOf = ({ add, change, destroy }: PlanCounts): PlanCounts => ({ add, change, destroy })

const reasonOf = (condition: { readonly reason: string; readonly message: string } | undefined) =>
  condition && { reason: condition.reason, message: shortened(condition.message) }

const shortened = (text: string) => (text.length > maxMessageLength ? `${text.slice(0, maxMessageLength - 1)}…` : text)

function timeOf<Name extends string>(name: Name, time: string | undefined): { readonly [name in Name]?: number } {
  return time === undefined ? {} : ({ [name]: Date.parse(time) } as { readonly [name in Name]: number })
}
