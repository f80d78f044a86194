import type { Tenant, TenantStatus } from '../../../api/index.ts'
import { type ConditionUpdate, equalJson, findCondition, setCondition } from '../../../kubernetes/object/index.ts'
import { selectorError, type TenantAccount, type TenantIndex } from '../queue/index.ts'

/** Why the partition of a Tenant cannot have its Namespaces; undefined: it can. */
export type PartitionError = (tenant: Tenant) => string | undefined

export type TenantCounts = Required<Pick<TenantStatus, 'namespaces' | 'queued' | 'running'>>

/** @param account undefined if none of its Runs is queued or assigned. */
export const tenantCountsOf = (
  name: string,
  account: Pick<TenantAccount, 'queued' | 'running'> | undefined,
  index: TenantIndex,
): TenantCounts => ({ namespaces: index.namespacesOf(name).length, queued: account?.queued ?? 0, running: account?.running ?? 0 })

/** The status of a Tenant: counts and the condition `Ready`; and how it differs from the present one. */
export function tenantStatusOf(
  tenant: Tenant,
  account: Pick<TenantAccount, 'queued' | 'running'> | undefined,
  index: TenantIndex,
  nowMs: number,
  {
    partitionError = () => undefined,
    isElsewhere = false,
  }: {
    readonly partitionError?: PartitionError | undefined
    /** Another partition reports the counts (`tenant-reports.ts`), which stay as they are. */
    readonly isElsewhere?: boolean
  } = {},
): { readonly status: TenantStatus; readonly change: 'None' | 'Count' | 'Urgent' } {
  const { name, generation = 1 } = tenant.metadata
  const ready = { ...readyCondition(tenant, index, partitionError), observedGeneration: generation }
  const conditions = setCondition(tenant.status?.conditions, ready, nowMs)
  const counts = isElsewhere ? {} : tenantCountsOf(name, account, index)
  const status: TenantStatus = { ...tenant.status, observedGeneration: generation, conditions, ...counts }
  if (equalJson(tenant.status, status)) return { status, change: 'None' }
  const before = findCondition(tenant.status?.conditions, 'Ready')
  const isUrgent = tenant.status?.observedGeneration !== generation || before?.status !== ready.status || before.message !== ready.message
  return { status, change: isUrgent ? 'Urgent' : 'Count' }
}

function readyCondition(tenant: Tenant, index: TenantIndex, partitionError: PartitionError): Omit<ConditionUpdate, 'observedGeneration'> {
  const { metadata, spec } = tenant
  const noPartition = partitionError(tenant)
  if (noPartition) return { type: 'Ready', status: 'False', reason: 'NoSuchPartition', message: noPartition }
  const error = selectorError(spec)
  if (error) return { type: 'Ready', status: 'False', reason: 'InvalidSelector', message: error }
  const conflicts = index.conflictsOf(metadata.name)
  if (conflicts.length === 0) return { type: 'Ready', status: 'True', reason: 'Ready', message: 'weight and limits are applied' }
  const which = conflicts.slice(0, 5).map(({ namespace, owner }) => `${namespace} (Tenant ${owner})`)
  const message = `namespaces claimed by older Tenants: ${which.join(', ')}; remove each from one of the two Tenants`
  return { type: 'Ready', status: 'False', reason: 'NamespaceConflict', message }
}
