import {
  type ControllerFigures,
  controllerFiguresOf,
  isEnded,
  type Run,
  type Stack,
  type Tenant,
  type Worker,
  type WorkerPool,
} from '../../api/index.ts'
import { TenantIndex } from '../../controllers/dispatch/index.ts'
import type { LeaseBody } from '../../kubernetes/client/index.ts'
import { type Informer, ringLabel, shardViewOf } from '../../kubernetes/controller/index.ts'
import { type KubeObject, objectKey } from '../../kubernetes/object/index.ts'
import type { ControllerRow, PartitionRow, PoolRow, RunRow, StackRow, TenantRow, WorkerRow } from '../protocol/index.ts'
import { RowTable } from './row-table.ts'
import { controllerRow, type PartitionBody, partitionRow, poolRow, runRow, stackRow, tenantRow, workerRow } from './rows.ts'

type Cache<Body> = Pick<Informer<Body>, 'onChange' | 'get' | 'list'>

/** The caches that rows are made of. */
export type ProjectionSources = {
  readonly stacks: Cache<Pick<Stack, 'spec' | 'status'>>
  readonly runs: Cache<Pick<Run, 'spec' | 'status'>>
  readonly workers: Cache<Pick<Worker, 'spec' | 'status'>>
  readonly pools: Cache<Pick<WorkerPool, 'spec' | 'status'>>
  readonly tenants: Cache<Pick<Tenant, 'spec' | 'status'>>
  readonly namespaces: Cache<object>
  readonly leases: Cache<LeaseBody>
}

export type RowTables = {
  readonly stacks: RowTable<StackRow>
  readonly runs: RowTable<RunRow>
  readonly workers: RowTable<WorkerRow>
  readonly pools: RowTable<PoolRow>
  readonly tenants: RowTable<TenantRow>
  readonly controllers: RowTable<ControllerRow>
  readonly partitions: RowTable<PartitionRow>
}

/**
 * The rows of all tables, kept as the caches change. Shared by every session: who may see a row is decided where it is sent.
 * A Stack's row has its active Run and its Tenant, so it follows both.
 */
export class Projections {
  readonly tables: RowTables = {
    stacks: new RowTable(),
    runs: new RowTable(),
    workers: new RowTable(),
    pools: new RowTable(),
    tenants: new RowTable(),
    controllers: new RowTable(),
    partitions: new RowTable(),
  }
  readonly #sources: ProjectionSources
  /** Keys of the Runs of each Stack that have not ended, the newest last. */
  readonly #active = new Map<string, Map<string, number>>()
  /** By Lease: the keys of the rows of the controllers of its holder, which are ordered after that of the Lease. */
  readonly #published = new Map<string, readonly string[]>()
  #tenants = new TenantIndex()
  #areTenantsOld = false

  constructor(sources: ProjectionSources) {
    this.#sources = sources
    const { stacks, runs, workers, pools, tenants, namespaces, leases } = sources
    const { tables } = this
    namespaces.onChange({ changed: () => this.#ageTenants() })
    tenants.onChange({ changed: () => this.#ageTenants() })
    runs.onChange({ changed: ({ type, object }) => this.#runChanged(object as Run, type === 'deleted') })
    tables.stacks.follow(stacks, stack => this.#stackRow(stack as Stack))
    tables.workers.follow(workers, worker => workerRow(worker as Worker))
    tables.pools.follow(pools, pool => poolRow(pool as WorkerPool))
    leases.onChange({ changed: ({ type, object }) => this.#leaseChanged(object, type === 'deleted') })
    this.#readTenants()
  }

  /** Adds the table of partitions, where an API server has that kind. */
  followPartitions(partitions: Pick<Cache<PartitionBody>, 'onChange'>): void {
    this.tables.partitions.follow(partitions, partitionRow)
  }

  /**
   * Of the controllers of this process.
   * @param names of all; those without figures do not reconcile single objects.
   */
  setOwnControllers(figures: readonly ControllerFigures[], names: readonly string[]): void {
    const own = (name: string): ControllerRow => ({ key: `process/${name}`, name, holder: 'this process' })
    for (const name of names) if (!figures.some(each => each.name === name)) this.tables.controllers.set(own(name))
    for (const each of figures) this.tables.controllers.set({ ...own(each.name), ...each })
  }

  /** The Tenant whose share the Runs of the namespace have: also one that has only the name of the namespace. Undefined if there is none. */
  tenantOf(namespace: string): string | undefined {
    const name = this.#tenants.tenantOf(namespace)
    return this.#sources.tenants.get(name) && name
  }

  /** The Runs of a Stack that are kept, the newest first. */
  runsOf(namespace: string, stack: string): RunRow[] {
    const found: RunRow[] = []
    for (const row of this.tables.runs.values()) if (row.namespace === namespace && row.stack === stack) found.push(row)
    return found.sort((a, b) => b.createdMs - a.createdMs || (a.key < b.key ? 1 : -1))
  }

  /** The Stacks of one namespace, in no order. */
  stacksIn(namespace: string): Stack[] {
    return (this.#sources.stacks.list() as Stack[]).filter(({ metadata }) => metadata.namespace === namespace)
  }

  #stackRow(stack: Stack): StackRow {
    const { namespace = '' } = stack.metadata
    const active = [...(this.#active.get(objectKey(stack)) ?? [])].sort(([, a], [, b]) => b - a)[0]?.[0]
    return stackRow(stack, active === undefined ? undefined : this.tables.runs.get(active), this.tenantOf(namespace))
  }

  #runChanged(run: Run, isDeleted: boolean): void {
    const key = objectKey(run)
    const { namespace = '' } = run.metadata
    if (isDeleted) this.tables.runs.delete(key)
    else this.tables.runs.set(runRow(run, this.tenantOf(namespace)))
    const stackKey = `${namespace}/${run.spec.stackRef.name}`
    const active = this.#active.get(stackKey)
    if (!isDeleted && !isEnded(run)) {
      if (active) active.set(key, run.spec.epoch)
      else this.#active.set(stackKey, new Map([[key, run.spec.epoch]]))
    } else {
      if (!active?.delete(key)) return
      if (active.size === 0) this.#active.delete(stackKey)
    }
    const stack = this.#sources.stacks.get(stackKey)
    if (stack) this.tables.stacks.set(this.#stackRow(stack as Stack))
  }

  /** Which member of a ring holds which buckets is in the Lease of the ring. */
  #leaseChanged(lease: KubeObject<LeaseBody>, isDeleted: boolean): void {
    const ring = lease.metadata.labels?.[ringLabel]
    const ofRing = ring === undefined ? [] : this.#sources.leases.list().filter(({ metadata }) => metadata.labels?.[ringLabel] === ring)
    const members = ring === undefined ? [] : (shardViewOf(ring, ofRing)?.members ?? [])
    this.#publishedChanged(lease, isDeleted)
    if (isDeleted) this.tables.controllers.delete(objectKey(lease))
    for (const each of ring === undefined && !isDeleted ? [lease] : ofRing) {
      const member = members.find(({ session }) => session !== undefined && session === each.spec?.holderIdentity)
      const row = controllerRow(each, member && { buckets: member.buckets.length })
      if (row) this.tables.controllers.set(row)
      else this.tables.controllers.delete(objectKey(each))
    }
  }

  /** A process that holds a Lease publishes there what its controllers do. */
  #publishedChanged(lease: KubeObject<LeaseBody>, isDeleted: boolean): void {
    const leaseKey = objectKey(lease)
    const ofLease = isDeleted ? undefined : controllerRow(lease)
    const figures = ofLease?.holder ? controllerFiguresOf(lease) : []
    // A process that was killed stays the holder: the age of the Lease is that of its figures.
    const { holder = '', renewedMs, leaseDurationMs } = ofLease ?? {}
    const rows = figures.map(each => ({ key: `${leaseKey} ${each.name}`, holder, renewedMs, leaseDurationMs, ...each }))
    const keys = rows.map(({ key }) => key)
    for (const key of this.#published.get(leaseKey) ?? []) if (!keys.includes(key)) this.tables.controllers.delete(key)
    for (const row of rows) this.tables.controllers.set(row)
    if (keys.length > 0) this.#published.set(leaseKey, keys)
    else this.#published.delete(leaseKey)
  }

  /** Many namespaces may change together, as at the start: the index is made once after them. */
  #ageTenants(): void {
    if (this.#areTenantsOld) return
    this.#areTenantsOld = true
    setImmediate(() => this.#readTenants())
  }

  #readTenants(): void {
    this.#areTenantsOld = false
    const { tenants, namespaces } = this.#sources
    const all = tenants.list() as Tenant[]
    this.#tenants = new TenantIndex(all, namespaces.list() as KubeObject<unknown>[])
    for (const row of this.tables.stacks.values()) {
      const { tenant: previous, ...rest } = row
      const tenant = this.tenantOf(row.namespace)
      if (tenant !== previous) this.tables.stacks.set(tenant === undefined ? rest : { ...rest, tenant })
    }
    const known = new Set(all.map(({ metadata }) => metadata.name))
    for (const { key } of [...this.tables.tenants.values()]) if (!known.has(key)) this.tables.tenants.delete(key)
    for (const tenant of all) this.tables.tenants.set(tenantRow(tenant))
  }
}
