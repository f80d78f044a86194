import type { Tenant, WorkerPool } from '../../api/index.ts'
import { equalJson, type KubeObject } from '../../kubernetes/object/index.ts'
import { type RunQueue, TenantIndex } from './queue/index.ts'

/**
 * What configures the queue: pools, Tenants, and the labels of namespaces. Applying a change orders the whole queue again, so changes are collected
 * until the next decision. Methods that take an object return true if a decision is due.
 */
export class Settings {
  readonly #pools = new Map<string, WorkerPool>()
  readonly #tenants = new Map<string, Tenant>()
  readonly #namespaces = new Map<string, KubeObject<unknown>>()
  #tenantIndex = new TenantIndex()
  #isStale = true

  get pools(): ReadonlyMap<string, WorkerPool> {
    return this.#pools
  }

  get tenants(): ReadonlyMap<string, Tenant> {
    return this.#tenants
  }

  /** As of the last {@link apply}. */
  get tenantIndex(): TenantIndex {
    return this.#tenantIndex
  }

  poolChanged(pool: WorkerPool): boolean {
    return this.#changed(this.#pools, pool)
  }

  poolDeleted(pool: WorkerPool): boolean {
    return this.#deleted(this.#pools, pool)
  }

  tenantChanged(tenant: Tenant): boolean {
    return this.#changed(this.#tenants, tenant)
  }

  tenantDeleted(tenant: Tenant): boolean {
    return this.#deleted(this.#tenants, tenant)
  }

  namespaceChanged(namespace: KubeObject<unknown>): boolean {
    const { name, labels } = namespace.metadata
    const before = this.#namespaces.get(name)
    this.#namespaces.set(name, namespace)
    if (before && equalJson(before.metadata.labels, labels)) return false
    this.#isStale = true
    return true
  }

  namespaceDeleted(namespace: KubeObject<unknown>): boolean {
    return this.#deleted(this.#namespaces, namespace)
  }

  apply(queue: RunQueue): void {
    if (!this.#isStale) return
    this.#isStale = false
    this.#tenantIndex = new TenantIndex([...this.#tenants.values()], [...this.#namespaces.values()])
    queue.setTenants(this.#tenantIndex)
    const limits = [...this.#pools.values()].flatMap(({ metadata, spec }) => {
      const limit = spec.limits?.maxRunning
      return limit === undefined ? [] : [[metadata.name, limit] as const]
    })
    queue.setPoolLimits(new Map(limits))
  }

  /** A change of the status alone is one that was decided here. */
  #changed<T extends KubeObject<unknown>>(settings: Map<string, T>, object: T): boolean {
    const { name, generation } = object.metadata
    const before = settings.get(name)
    settings.set(name, object)
    if (before && before.metadata.generation === generation && before.metadata.uid === object.metadata.uid) return false
    this.#isStale = true
    return true
  }

  #deleted<T extends KubeObject<unknown>>(settings: Map<string, T>, object: T): boolean {
    settings.delete(object.metadata.name)
    this.#isStale = true
    return true
  }
}
