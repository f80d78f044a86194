import type { Worker, WorkerPoolSpec } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { decidePoolSize, idleTimeoutMs, initialStartState, type PoolSize, type WorkerLoad, withRun } from '../dispatch/index.ts'
import { pool } from './stack-load.ts'

/** A worker of the simulation. */
export type SimulatedWorker = {
  readonly object: Worker
  active: number
  total: number
  idleSinceMs: number
  /** Its place among those with a free slot; -1: it has none. */
  freeIndex: number
}

const noNeeds = { cpuMillis: 0, memoryBytes: 0 }

/**
 * The workers of one pool: started, free, busy, gone. How many there should be is asked of `decidePoolSize`.
 * Invariants: `free` are just those that would take a Run; a one-shot worker is gone when its Runs have ended.
 */
export class WorkerFleet {
  readonly spec: WorkerPoolSpec
  readonly slots: number
  readonly max: number
  readonly free: SimulatedWorker[] = []
  readonly loads = new Map<string, WorkerLoad>()
  readonly #workers = new Map<string, SimulatedWorker>()
  readonly #starting: { name: string; sinceMs: number }[] = []
  readonly #idleTimeoutMs: number
  /** Nothing here is decided by a worker's age: how long it is idle is counted in `idleSinceMs`. */
  readonly #createdAt: string
  #busy = 0
  #startedCount = 0

  constructor(spec: WorkerPoolSpec, epochMs: number) {
    this.spec = spec
    this.slots = spec.slots ?? 1
    this.max = spec.max ?? 4
    this.#idleTimeoutMs = idleTimeoutMs({ spec })
    this.#createdAt = rfc3339(epochMs)
  }

  /** Workers that cost: those that start, too. */
  get provisioned(): number {
    return this.#workers.size + this.#starting.length
  }

  get busy(): number {
    return this.#busy
  }

  /** How many were ever started. */
  get started(): number {
    return this.#startedCount
  }

  /** What the pool should be, with so many Runs that one more worker after the other would let start. */
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

  /** Asks for a worker. Returns its name, for {@link register}. */
  start(nowMs: number): string {
    const name = `w${this.#startedCount++}`
    this.#starting.push({ name, sinceMs: nowMs })
    return name
  }

  /** A worker that was started takes Runs from now on. */
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
        spec: { pool, slots: this.slots, lifecycle: this.spec.lifecycle ?? 'OneShot' },
        status: { phase: 'Ready' },
      },
      active: 0,
      total: 0,
      idleSinceMs: nowMs,
      freeIndex: -1,
    }
    this.#workers.set(name, worker)
    this.#setFree(worker, true)
  }

  /** The worker has one Run more. */
  assign(name: string): SimulatedWorker {
    const worker = this.#workers.get(name)
    if (!worker) throw new Error(`bug: a Run was given to ${name}, which is not there`)
    if (worker.active++ === 0) this.#busy++
    worker.total++
    this.loads.set(name, withRun(this.loads.get(name), 1, noNeeds))
    // A one-shot worker gets all its Runs in one decision: from then on it says that it is busy.
    if (this.#isOneShot || worker.active >= this.slots) this.#setFree(worker, false)
    return worker
  }

  /** A Run of the worker has ended. */
  release(worker: SimulatedWorker, nowMs: number): void {
    const { name } = worker.object.metadata
    worker.active--
    if (worker.active === 0) this.#busy--
    this.loads.set(name, withRun(this.loads.get(name), -1, noNeeds))
    if (this.#isOneShot) {
      if (worker.active === 0) this.#remove(worker)
      return
    }
    if (worker.active === 0) worker.idleSinceMs = nowMs
    this.#setFree(worker, true)
  }

  /** Lets spare idle workers go whose time is over, the longest idle ones first. Returns when to look again; Infinity: no need. */
  removeIdle(startable: number, nowMs: number): number {
    const { surplus } = this.size(startable, nowMs)
    if (surplus <= 0) return Number.POSITIVE_INFINITY
    const idle = this.free.filter(({ active }) => active === 0).sort((a, b) => a.idleSinceMs - b.idleSinceMs)
    let againMs = Number.POSITIVE_INFINITY
    for (const worker of idle.slice(0, surplus)) {
      const untilMs = worker.idleSinceMs + this.#idleTimeoutMs
      if (nowMs >= untilMs) this.#remove(worker)
      else againMs = Math.min(againMs, untilMs)
    }
    return againMs
  }

  /** When {@link removeIdle} has something to do at the earliest, for a worker that is idle from `nowMs` on. */
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
    this.loads.delete(name)
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
