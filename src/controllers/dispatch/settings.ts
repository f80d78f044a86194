import { mergePolicies, type PolicySource, poolPolicy, type RunSpec, type Tenant, type WorkerPool } from '../../api/index.ts'
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
  /** Some Tenant selects namespaces by label and requires something of their Runs. */
  #dependsOnLabels = false

  get pools(): ReadonlyMap<string, WorkerPool> {
    return this.#pools
  }

  get tenants(): ReadonlyMap<string, Tenant> {
    return this.#tenants
  }

  hasNamespace(name: string): boolean {
    return this.#namespaces.has(name)
  }

  /** As of the last {@link apply}. */
  get tenantIndex(): TenantIndex {
    return this.#tenantIndex
  }

  /**
   * What the Tenant of the namespace and the pool require of a Run. Undefined: not known before the namespace is observed, which may be after a Run
   * in it, because objects of different kinds are observed in no order.
   */
  policiesFor(namespace: string, poolName: string): readonly PolicySource[] | undefined {
    if (this.#dependsOnLabels && !this.#namespaces.has(namespace)) return undefined
    const tenant = this.#tenants.get(this.#tenantIndex.tenantOf(namespace))
    const pool = this.#pools.get(poolName)
    return [
      ...(tenant ? [{ origin: `Tenant ${tenant.metadata.name}`, policy: tenant.spec }] : []),
      ...(pool ? [{ origin: `WorkerPool ${poolName}`, policy: poolPolicy(pool.spec) }] : []),
    ]
  }

  /** The Tenant of the namespace, with its UID: another Tenant of the same name may have had other namespaces. Undefined if it has none. */
  tenantRefOf(namespace: string): RunSpec['tenant'] {
    const tenant = this.#tenants.get(this.#tenantIndex.ownerOf(namespace) ?? '')
    return tenant && { name: tenant.metadata.name, uid: tenant.metadata.uid }
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

  /** Returns true if anything has changed since it was last called. */
  apply(queue: RunQueue): boolean {
    if (!this.#isStale) return false
    this.#isStale = false
    this.#dependsOnLabels = [...this.#tenants.values()].some(({ spec }) => spec.namespaceSelector && hasPolicy(spec))
    this.#tenantIndex = new TenantIndex([...this.#tenants.values()], [...this.#namespaces.values()])
    queue.setTenants(this.#tenantIndex)
    const limits = [...this.#pools.values()].flatMap(({ metadata, spec }) => {
      const limit = spec.limits?.maxRunning
      return limit === undefined ? [] : [[metadata.name, limit] as const]
    })
    queue.setPoolLimits(new Map(limits))
    return true
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

const hasPolicy = (spec: Tenant['spec']) => Object.keys(mergePolicies([spec])).length > 0
