import type { Tenant } from '../../../api/index.ts'
import { equalJson } from '../../../kubernetes/object/index.ts'
import type { DispatchAction } from '../dispatch-action.ts'
import type { WriteOutcome } from '../dispatch-event.ts'
import { type ObjectVersion, versionOf } from '../object-version.ts'
import type { RunQueue, TenantIndex } from '../queue/index.ts'
import { CoalescedWrites } from './coalesced-writes.ts'
import { type TenantCounts, tenantCountsOf } from './tenant-status.ts'

export type TenantReportsInput = {
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly tenantIndex: TenantIndex
  readonly queue: RunQueue
  /** Whether the namespaces of a Tenant are in this partition. */
  readonly isHere: (tenant: Tenant) => boolean
  /** True while a write of the Tenant is pending: nothing is decided for it. */
  readonly isPending: (tenant: ObjectVersion) => boolean
  readonly nowMs: number
}

/** How often the counts are compared: there may be thousands of Tenants. */
const checkIntervalMs = 1_000

/** Reports the counts of the Tenants of a partition to home, whose dispatcher sees neither their namespaces nor their Runs. */
export class TenantReports {
  /** By Tenant: what was reported last. Without an entry it is not known what home has. */
  readonly #reported = new Map<string, TenantCounts>()
  readonly #writes = new CoalescedWrites()
  #checkedAtMs = Number.NEGATIVE_INFINITY

  /** @returns the actions, and the milliseconds until the next check or report is due; Infinity if none is. */
  decide(input: TenantReportsInput): { readonly actions: readonly DispatchAction[]; readonly requeueAfterMs: number } {
    const { tenants, tenantIndex, queue, isHere, isPending, nowMs } = input
    const checkInMs = this.#checkedAtMs + checkIntervalMs - nowMs
    if (checkInMs > 0 && checkInMs <= checkIntervalMs) return { actions: [], requeueAfterMs: checkInMs }
    this.#checkedAtMs = nowMs
    const accounts = new Map([...queue.accounts()].map(account => [account.name, account]))
    const actions: DispatchAction[] = []
    let requeueAfterMs = Number.POSITIVE_INFINITY
    for (const [name, tenant] of tenants) {
      if (!isHere(tenant)) {
        this.forget(name)
        continue
      }
      const object = versionOf('Tenant', tenant)
      if (isPending(object)) continue
      const counts = tenantCountsOf(name, accounts.get(name), tenantIndex)
      const reported = this.#reported.get(name)
      const change = !reported ? 'Urgent' : equalJson(reported, counts) ? 'None' : 'Count'
      const inMs = this.#writes.dueInMs(name, change, nowMs)
      if (inMs === 0) {
        this.#reported.set(name, counts)
        actions.push({ kind: 'ReportTenant', object, counts })
      } else requeueAfterMs = Math.min(requeueAfterMs, inMs)
    }
    return { actions, requeueAfterMs }
  }

  /** Also after a write of the status in this partition, which looks the same: the report is written once more at most. */
  writeSettled(tenant: string, outcome: WriteOutcome): void {
    if (outcome !== 'Written') this.#reported.delete(tenant)
  }

  forget(tenant: string): void {
    this.#reported.delete(tenant)
    this.#writes.forget(tenant)
  }
}
