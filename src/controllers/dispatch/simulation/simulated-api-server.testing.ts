import type { ReportedPoolDemand, Run, Tenant, Worker, WorkerPool } from '../../../api/index.ts'
import { objectKey, rfc3339 } from '../../../kubernetes/object/index.ts'
import type { DispatchEvent, WorkerLease } from '../dispatch-event.ts'
import type { ObjectVersion } from '../object-version.ts'
import { testPool } from '../objects.testing.ts'
import type { Simulation } from './simulation.testing.ts'

export const nameOf = ({ namespace, name }: ObjectVersion) => (namespace === '' ? name : `${namespace}/${name}`)

/** Objects, each with a version that changes with every write. Watches deliver immediately. */
export class SimulatedApiServer {
  readonly runs = new Map<string, Run>()
  readonly workers = new Map<string, Worker>()
  readonly leases = new Map<string, WorkerLease>()
  readonly pools = new Map<string, WorkerPool>([['default', testPool('default', { mode: 'External' })]])
  readonly #tenants: Tenant[] = []
  readonly #simulation: Simulation
  #version = 0

  constructor(simulation: Simulation) {
    this.#simulation = simulation
  }

  /** What a new leader lists. */
  *list(options: { readonly isTakeover: boolean }): Generator<DispatchEvent> {
    for (const tenant of this.#tenants) yield { kind: 'TenantChanged', tenant }
    for (const pool of this.pools.values()) yield { kind: 'PoolChanged', pool }
    for (const worker of this.workers.values()) yield { kind: 'WorkerChanged', worker }
    for (const lease of this.leases.values()) yield { kind: 'LeaseChanged', lease }
    for (const run of this.runs.values()) yield { kind: 'RunChanged', run, isInitial: options.isTakeover }
  }

  /** Writes only if the object is still at this version. Returns whether it was. */
  write(object: ObjectVersion, change: () => void): boolean {
    const current = this.#current(object)?.metadata
    const isCurrent = current?.uid === object.uid && current.resourceVersion === object.resourceVersion
    if (isCurrent) change()
    return isCurrent
  }

  #current(object: ObjectVersion) {
    switch (object.kind) {
      case 'Run':
        return this.runs.get(nameOf(object))
      case 'Worker':
        return this.workers.get(object.name)
      case 'WorkerPool':
        return this.pools.get(object.name)
      case 'Tenant':
        return this.#tenants.find(({ metadata }) => metadata.name === object.name)
    }
  }

  nextVersion(): string {
    return String(++this.#version)
  }

  createRun(run: Run): void {
    this.runs.set(objectKey(run), run)
    this.#simulation.observe({ kind: 'RunChanged', run })
  }

  changeRun(key: string, change: (run: Run) => Run): void {
    const run = this.runs.get(key)
    if (!run) throw new Error(`unknown Run ${JSON.stringify(key)}`)
    const changed = change(run)
    const next = { ...changed, metadata: { ...changed.metadata, resourceVersion: this.nextVersion() } }
    this.runs.set(key, next)
    this.#simulation.observe({ kind: 'RunChanged', run: next })
  }

  /** A Run with a finalizer remains until that is removed. */
  deleteRun(key: string): void {
    const deletionTimestamp = rfc3339(this.#simulation.nowMs)
    if ((this.runs.get(key)?.metadata.finalizers ?? []).length === 0) this.removeRun(key)
    else this.changeRun(key, ({ metadata, ...rest }) => ({ ...rest, metadata: { ...metadata, deletionTimestamp } }))
  }

  removeRun(key: string): void {
    const run = this.runs.get(key)
    if (!run) throw new Error(`unknown Run ${JSON.stringify(key)}`)
    this.runs.delete(key)
    this.#simulation.observe({ kind: 'RunDeleted', run })
  }

  createTenant(tenant: Tenant): void {
    this.#tenants.push(tenant)
    this.#simulation.observe({ kind: 'TenantChanged', tenant })
  }

  /** A new spec of a pool. */
  applyPool(pool: WorkerPool): void {
    this.putPool({ ...pool, metadata: { ...pool.metadata, generation: ++this.#version } })
  }

  /** What another partition reports about its Runs; undefined: it has none. */
  reportDemand(name: string, partition: string, report: ReportedPoolDemand | undefined): void {
    const pool = this.pools.get(name)
    if (!pool) throw new Error(`there is no pool ${name}`)
    const { [partition]: _, ...others } = pool.status?.demand ?? {}
    this.putPool({ ...pool, status: { ...pool.status, demand: { ...others, ...(report && { [partition]: report }) } } })
  }

  putPool(pool: WorkerPool): void {
    const next = { ...pool, metadata: { ...pool.metadata, resourceVersion: this.nextVersion() } }
    this.pools.set(pool.metadata.name, next)
    this.#simulation.observe({ kind: 'PoolChanged', pool: next })
  }

  /** Creates a Worker and its Lease. */
  createWorker({ metadata, ...rest }: Worker): void {
    const { name } = metadata
    const creationTimestamp = rfc3339(this.#simulation.nowMs)
    const worker = { ...rest, metadata: { ...metadata, resourceVersion: this.nextVersion(), creationTimestamp } }
    const lease = { worker: name, uid: `lease-${name}`, resourceVersion: this.nextVersion(), isOfWorker: true }
    this.workers.set(name, worker)
    this.leases.set(name, lease)
    this.#simulation.observe({ kind: 'LeaseChanged', lease })
    this.#simulation.observe({ kind: 'WorkerChanged', worker })
  }

  /** Acts as a user who changes the spec of a Worker. */
  changeWorker(name: string, spec: Partial<Worker['spec']>): void {
    const before = this.workers.get(name)
    if (!before) throw new Error(`there is no worker ${name}`)
    const worker = { ...before, metadata: { ...before.metadata, resourceVersion: this.nextVersion() }, spec: { ...before.spec, ...spec } }
    this.workers.set(name, worker)
    this.#simulation.observe({ kind: 'WorkerChanged', worker })
  }

  /** What the worker reports that it executes. */
  setWorkerRuns(name: string, runs: readonly string[]): void {
    const before = this.workers.get(name)
    if (!before) throw new Error(`there is no worker ${name}`)
    const idleSince = runs.length === 0 ? { idleSince: rfc3339(this.#simulation.nowMs) } : {}
    const status = { phase: runs.length > 0 ? ('Busy' as const) : ('Ready' as const), runs: [...runs], ...idleSince }
    const worker = { ...before, metadata: { ...before.metadata, resourceVersion: this.nextVersion() }, status }
    this.workers.set(name, worker)
    this.#simulation.observe({ kind: 'WorkerChanged', worker })
  }

  /** Deletes a Worker and its Lease. */
  deleteWorker(name: string): void {
    const worker = this.workers.get(name)
    if (!worker) return
    this.workers.delete(name)
    this.#simulation.observe({ kind: 'WorkerDeleted', worker })
    this.deleteLease(name)
  }

  /** Returns false if the Lease does not exist. */
  renewLease(worker: string): boolean {
    const before = this.leases.get(worker)
    if (!before) return false
    const lease = { ...before, resourceVersion: this.nextVersion() }
    this.leases.set(worker, lease)
    this.#simulation.observe({ kind: 'LeaseChanged', lease })
    return true
  }

  deleteLease(worker: string): void {
    if (this.leases.delete(worker)) this.#simulation.observe({ kind: 'LeaseDeleted', worker })
  }
}
