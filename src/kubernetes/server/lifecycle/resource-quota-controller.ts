import { equalJson } from '../../object/index.ts'
import type { Quotas } from '../quota/index.ts'
import { mutate } from '../rest/index.ts'
import { parseEntry, type Store } from '../storage/index.ts'
import type { TaskQueue } from './task-queue.ts'

/** Writes the usage of each ResourceQuota into its status, as kube-controller-manager does. Many changes are combined into one write. */
export class ResourceQuotaController {
  readonly #store: Store
  readonly #queue: TaskQueue
  readonly #quotas: Quotas

  constructor(store: Store, queue: TaskQueue, quotas: Quotas) {
    this.#store = store
    this.#queue = queue
    this.#quotas = quotas
    quotas.onStatusChange = key => this.#enqueue(key)
  }

  start(): void {
    for (const key of this.#quotas.keys()) this.#enqueue(key)
  }

  #enqueue(key: string): void {
    this.#queue.add(`status of quota ${key}`, () => this.#updateStatus(key))
  }

  async #updateStatus(key: string): Promise<void> {
    await mutate(this.#store, this.#store.table('resourcequotas'), key, head => {
      const quota = head && parseEntry(head)
      const status = head && this.#quotas.status(head.namespace, head.name)
      if (!quota || !status || equalJson(quota.status ?? {}, status)) return { result: undefined }
      return { put: { ...quota, status } }
    })
  }
}
