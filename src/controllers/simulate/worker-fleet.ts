import { defaults, type Worker, type WorkerPoolSpec } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import {
  decidePoolSize,
  idleTimeoutMs,
  initialStartState,
  type PoolSize,
  type WorkerInventory,
  type WorkerLoad,
  withRun,
} from '../dispatch/index.ts'
import { poolName } from './stack-load.ts'

/** A worker of the simulation. */
export type SimulatedWorker = {
  readonly object: Worker
  active: number
  total: number
  idleSinceMs: number
  /** Index in `WorkerFleet.free`; -1 if it has no free slot. */
  freeIndex: number
}

const noNeeds = { cpuMillis: 0, memoryBytes: 0 }

/**
 * The workers of one pool: starting, free, busy. Their number is decided by `decidePoolSize`.
 * Invariants: `free` has exactly the workers that would accept a Run; a one-shot worker is removed when its Runs have ended.
 */
export class WorkerFleet {
  readonly spec: WorkerPoolSpec
  readonly slots: number
  readonly max: number
  readonly free: SimulatedWorker[] = []
  readonly #inventory: WorkerInventory
  readonly #loads = new Map<string, WorkerLoad>()
  readonly #workers = new Map<string, SimulatedWorker>()
  readonly #starting: { name: string; sinceMs: number }[] = []
  readonly #idleTimeoutMs: number
  /** The same for all workers, as no decision here depends on their age; `idleSinceMs` has the idle time. */
  readonly #createdAt: string
  #busy = 0
  #startedCount = 0

  /** @param inventory the scheduler's. It is kept up to date here. */
  constructor(spec: WorkerPoolSpec, inventory: WorkerInventory, epochMs: number) {
    this.spec = spec
    this.#inventory = inventory
    this.slots = spec.slots ?? 1
    this.max = spec.max ?? defaults.poolMax
    this.#idleTimeoutMs = idleTimeoutMs({ spec })
    this.#createdAt = rfc3339(epochMs)
  }

  /** Workers that cost money: registered and starting ones. */
  get provisioned(): number {
    return this.#workers.size + this.#starting.length
  }

  get busy(): number {
    return this.#busy
  }

  /** Workers started so far. */
  get started(): number {
    return this.#startedCount
  }

  /** The size decision for this number of startable Runs. */
  size(startable: number, nowMs: number): PoolSize {
    return decidePoolSize({
      spec: this.spec,
      startable,
      workers: this.#workers.size,
      busy: this.#busy,
      idle: this.#workers.size - this.#busy,
      min: this.spec.min ?? 0,
      state: { ...initialStartState, starting: this.#starting },
      nowMs,
    })
  }

  /** Starts a worker. Returns its name, for {@link register}. */
  start(nowMs: number): string {
    const name = `w${this.#startedCount++}`
    this.#starting.push({ name, sinceMs: nowMs })
    return name
  }

  /** Makes a started worker available. */
  register(name: string, nowMs: number): void {
    this.#starting.splice(
      this.#starting.findIndex(one => one.name === name),
      1,
    )
    const worker: SimulatedWorker = {
      object: {
        apiVersion: 'oarlock.dev/v1alpha1',
        kind: 'Worker',
        metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: this.#createdAt },
        spec: { pool: poolName, slots: this.slots, lifecycle: this.spec.lifecycle ?? 'OneShot' },
        status: { phase: 'Ready' },
      },
      active: 0,
      total: 0,
      idleSinceMs: nowMs,
      freeIndex: -1,
    }
    this.#workers.set(name, worker)
    this.#inventory.set(worker.object)
    this.#setFree(worker, true)
  }

  /** Adds a Run that the scheduler has assigned to the worker. */
  assign(name: string): SimulatedWorker {
    const worker = this.#workers.get(name)
    if (!worker) throw new Error(`bug: a Run was assigned to unknown worker ${name}`)
    if (worker.active++ === 0) this.#busy++
    worker.total++
    const load = withRun(this.#loads.get(name), 1, noNeeds)
    this.#loads.set(name, load)
    if (this.#isOneShot || worker.active >= this.slots) this.#setFree(worker, false)
    return worker
  }

  /** A one-shot worker gets all its Runs in one decision; after that it is in phase Busy. To be called after each decision that assigned it Runs. */
  markBusy({ object }: SimulatedWorker): void {
    if (this.#isOneShot && this.slots > 1)
      this.#inventory.set({ ...object, status: { phase: 'Busy' } }, this.#loads.get(object.metadata.name))
  }

  /** Removes an ended Run from the worker. */
  release(worker: SimulatedWorker, nowMs: number): void {
    const { name } = worker.object.metadata
    worker.active--
    if (worker.active === 0) this.#busy--
    const load = withRun(this.#loads.get(name), -1, noNeeds)
    this.#loads.set(name, load)
    if (this.#isOneShot) {
      if (worker.active === 0) this.#remove(worker)
      return
    }
    this.#inventory.setLoad(name, load)
    if (worker.active === 0) worker.idleSinceMs = nowMs
    this.#setFree(worker, true)
  }

  /** Removes surplus workers whose idle timeout has expired, the longest idle first. Returns the time of the next check; Infinity: none. */
  removeIdle(startable: number, nowMs: number): number {
    const { surplus } = this.size(startable, nowMs)
    if (surplus <= 0) return Number.POSITIVE_INFINITY
    const idle = this.free.filter(({ active }) => active === 0).sort((a, b) => a.idleSinceMs - b.idleSinceMs)
    let nextCheckMs = Number.POSITIVE_INFINITY
    for (const worker of idle.slice(0, surplus)) {
      const untilMs = worker.idleSinceMs + this.#idleTimeoutMs
      if (nowMs >= untilMs) this.#remove(worker)
      else nextCheckMs = Math.min(nextCheckMs, untilMs)
    }
    return nextCheckMs
  }

  /** When the idle timeout expires of a worker that is idle from `nowMs` on. */
  idleTimeoutAtMs(nowMs: number): number {
    return nowMs + this.#idleTimeoutMs
  }

  get #isOneShot(): boolean {
    return this.spec.lifecycle !== 'Warm'
  }

  #remove(worker: SimulatedWorker): void {
    const { name } = worker.object.metadata
    this.#setFree(worker, false)
    this.#workers.delete(name)
    this.#loads.delete(name)
    this.#inventory.delete(name)
  }

  #setFree(worker: SimulatedWorker, isFree: boolean): void {
    if (isFree === worker.freeIndex >= 0) return
    if (isFree) {
      worker.freeIndex = this.free.push(worker) - 1
      return
    }
    const last = this.free.pop()!
    if (last !== worker) {
      this.free[worker.freeIndex] = last
      last.freeIndex = worker.freeIndex
    }
    worker.freeIndex = -1
  }
}
