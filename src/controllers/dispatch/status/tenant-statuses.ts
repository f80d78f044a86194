import type { Tenant } from '../../../api/index.ts'
import type { DispatchAction } from '../dispatch-action.ts'
import { type ObjectVersion, versionOf } from '../object-version.ts'
import type { RunQueue, TenantIndex } from '../queue/index.ts'
import { CoalescedWrites } from './coalesced-writes.ts'
import { type PartitionError, tenantStatusOf } from './tenant-status.ts'

/** How often the statuses of Tenants are compared: there may be thousands. */
const checkIntervalMs = 1_000
/** How often at least where there are Partitions, which wake no dispatcher when they change. */
const partitionCheckIntervalMs = 5_000

export type TenantStatusesInput = {
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly tenantIndex: TenantIndex
  readonly queue: RunQueue
  /** True while a write of the Tenant is pending: nothing is decided for it. */
  readonly isPending: (tenant: ObjectVersion) => boolean
  /** Default: the server is no partition. */
  readonly partitionError?: PartitionError | undefined
  /** Whether the namespaces of a Tenant are in this partition. Default: there are no others. */
  readonly isHere?: ((tenant: Tenant) => boolean) | undefined
  readonly nowMs: number
}

/** Reports the statuses of Tenants. */
export class TenantStatuses {
  readonly #writes = new CoalescedWrites()
  #checkedAtMs = Number.NEGATIVE_INFINITY

  /** @returns the actions, and the milliseconds until the next check or status is due; Infinity if none is. */
  decide(input: TenantStatusesInput): { readonly actions: readonly DispatchAction[]; readonly requeueAfterMs: number } {
    const { tenants, tenantIndex, queue, isPending, partitionError, isHere, nowMs } = input
    if (tenants.size === 0) return { actions: [], requeueAfterMs: Number.POSITIVE_INFINITY }
    const checkInMs = this.#checkedAtMs + checkIntervalMs - nowMs
    if (checkInMs > 0 && checkInMs <= checkIntervalMs) return { actions: [], requeueAfterMs: checkInMs }
    this.#checkedAtMs = nowMs
    const accounts = new Map([...queue.accounts()].map(account => [account.name, account]))
    const actions: DispatchAction[] = []
    let requeueAfterMs = partitionError ? partitionCheckIntervalMs : Number.POSITIVE_INFINITY
    for (const [name, tenant] of tenants) {
      if (isPending(versionOf('Tenant', tenant))) continue
      const where = { partitionError, isElsewhere: isHere?.(tenant) === false }
      const { status, change } = tenantStatusOf(tenant, accounts.get(name), tenantIndex, nowMs, where)
      const inMs = this.#writes.dueInMs(name, change, nowMs)
      if (inMs === 0) actions.push({ kind: 'PatchTenantStatus', tenant, status })
      else requeueAfterMs = Math.min(requeueAfterMs, inMs)
    }
    return { actions, requeueAfterMs }
  }

  forget(tenant: string): void {
    this.#writes.forget(tenant)
  }
}
