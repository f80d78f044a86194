import { type TenantStatus, tenantResource } from '../../../api/index.ts'
import { coerceError, patchStatusIfChanged } from '../../../kubernetes/controller/index.ts'
import { type ConditionUpdate, equalJson, setCondition } from '../../../kubernetes/object/index.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import type { QueueController } from './queue-controller.ts'
import { selectorError } from './tenants.ts'

/** Counts of a tenant change with every Run; the status is written less often. */
const statusEveryMs = 1_000

/** Writes the status of Tenants. */
export class TenantController {
  readonly #context: DispatchContext
  readonly #queueController: QueueController
  #writtenAtMs = -Infinity

  constructor(context: DispatchContext, queueController: QueueController) {
    this.#context = context
    this.#queueController = queueController
  }

  /** @returns milliseconds until a postponed status must be written; Infinity if there is none. */
  writeStatus(nowMs: number): number {
    const { caches, manager, log } = this.#context
    const tenants = caches.tenants.list()
    if (tenants.length === 0) return Infinity
    if (nowMs - this.#writtenAtMs < statusEveryMs) return statusEveryMs - (nowMs - this.#writtenAtMs)
    const accounts = new Map([...this.#queueController.queue.accounts()].map(account => [account.name, account]))
    const index = this.#queueController.tenants
    for (const tenant of tenants) {
      const { name, generation = 1 } = tenant.metadata
      const { queued = 0, running = 0 } = accounts.get(name) ?? {}
      const conditions = setCondition(
        tenant.status?.conditions,
        { ...this.#ready(name, tenant.spec), observedGeneration: generation },
        nowMs,
      )
      const next: TenantStatus = {
        observedGeneration: generation,
        conditions,
        namespaces: index.namespacesOf(name).length,
        queued,
        running,
      }
      if (equalJson(tenant.status, { ...tenant.status, ...next })) continue
      this.#writtenAtMs = nowMs
      patchStatusIfChanged(manager.leaderClient.resource(tenantResource), tenant, next).then(
        written => caches.tenants.applyLocal(written),
        (thrown: unknown) => log.debug({ err: coerceError(thrown), tenant: name }, 'failed to write the status of the Tenant'),
      )
    }
    return Infinity
  }

  #ready(name: string, spec: Parameters<typeof selectorError>[0]): Omit<ConditionUpdate, 'observedGeneration'> {
    const error = selectorError(spec)
    if (error) return { type: 'Ready', status: 'False', reason: 'InvalidSelector', message: error }
    const conflicts = this.#queueController.tenants.conflictsOf(name)
    if (conflicts.length === 0) return { type: 'Ready', status: 'True', reason: 'Ready', message: 'weight and limits are applied' }
    const which = conflicts.slice(0, 5).map(({ namespace, owner }) => `${namespace} (Tenant ${owner})`)
    const message = `namespaces claimed by older Tenants: ${which.join(', ')}; remove each from one of the two Tenants`
    return { type: 'Ready', status: 'False', reason: 'NamespaceConflict', message }
  }
}
