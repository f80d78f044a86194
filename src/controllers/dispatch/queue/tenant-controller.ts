import { type TenantStatus, tenantResource } from '../../../api/index.ts'
import { coerceError, patchStatusIfChanged } from '../../../kubernetes/controller/index.ts'
import { type ConditionUpdate, equalJson, setCondition } from '../../../kubernetes/object/index.ts'
import type { DispatchContext } from '../dispatch-context.ts'
import type { QueueController } from './queue-controller.ts'
import { selectorError } from './tenants.ts'

/** A tenant's numbers change with every Run; people look at them less often. */
const statusEveryMs = 1_000

/** Writes the status of Tenants. */
export class TenantController {
  readonly #context: DispatchContext
  readonly #queueController: QueueController
  #writtenAtMs = -Infinity

  constructor(context: DispatchContext, controller: QueueController) {
    this.#context = context
    this.#queueController = controller
  }

  /** Returns after how many milliseconds a status that was held back is to be written. */
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
        (thrown: unknown) => log.debug({ err: coerceError(thrown), tenant: name }, 'status of the tenant was not written'),
      )
    }
    return Infinity
  }

  #ready(name: string, spec: Parameters<typeof selectorError>[0]): Omit<ConditionUpdate, 'observedGeneration'> {
    const error = selectorError(spec)
    if (error) return { type: 'Ready', status: 'False', reason: 'InvalidSelector', message: error }
    const conflicts = this.#queueController.tenants.conflictsOf(name)
    if (conflicts.length === 0) return { type: 'Ready', status: 'True', reason: 'Ready', message: 'Its terms are in force' }
    const which = conflicts.slice(0, 5).map(({ namespace, owner }) => `${namespace} (Tenant ${owner})`)
    const message = `Older Tenants have some of its namespaces: ${which.join(', ')}. Take them out of one of the two`
    return { type: 'Ready', status: 'False', reason: 'NamespaceTaken', message }
  }
}
