import type { Worker, WorkerPoolSpec } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { decidePoolSize, idleTimeoutMs, noStarts, type PoolSize, type WorkerLoad, withRun } from '../dispatch/index.ts'
import { pool } from './stack-load.ts'

/** A worker of the simulation. */
export type SimulatedWorker = {
  readonly worker: Worker
  active: number
  total: number
  idleSinceMs: number
  /** Its place among those with a free slot; -1: it has none. */
  freeAt: number
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
  readonly #hands = new Map<string, SimulatedWorker>()
  readonly #starting: { name: string; sinceMs: number }[] = []
  readonly #idleTimeoutMs: number
  /** Nothing here is decided by a worker's age: how long it is idle is counted in `idleSinceMs`. */
  readonly #createdAt: string
  #busy = 0
  #number = 0

  constructor(spec: WorkerPoolSpec, epochMs: number) {
    this.spec = spec
    this.slots = spec.slots ?? 1
    this.max = spec.max ?? 4
    this.#idleTimeoutMs = idleTimeoutMs({ spec })
    this.#createdAt = rfc3339(epochMs)
  }

  /** Workers that cost: those that start, too. */
  get paid(): number {
    return this.#hands.size + this.#starting.length
  }

  get busy(): number {
    return this.#busy
  }

  /** How many were ever started. */
  get started(): number {
    return this.#number
  }

  /** What the pool should be, with so many Runs that one more worker after the other would let start. */
  size(wanted: number, nowMs: number): PoolSize {
    return decidePoolSize({
      spec: this.spec,
      wanted,
      workers: this.#hands.size,
      busy: this.#busy,
      idle: this.#hands.size - this.#busy,
      min: this.spec.min ?? 0,
      state: { ...noStarts, starting: this.#starting },
      nowMs,
    })
  }

  /** Asks for a worker. Returns its name, for {@link register}. */
  start(nowMs: number): string {
    const name = `w${this.#number++}`
    this.#starting.push({ name, sinceMs: nowMs })
    return name
  }

  /** A worker that was started takes Runs from now on. */
  register(name: string, nowMs: number): void {
    this.#starting.splice(
      this.#starting.findIndex(one => one.name === name),
      1,
    )
    const hand: SimulatedWorker = {
      worker: {
        apiVersion: 'oarlock.dev/v1alpha1',
        kind: 'Worker',
        metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: this.#createdAt },
        spec: { pool, slots: this.slots, lifecycle: this.spec.lifecycle ?? 'OneShot' },
        status: { phase: 'Ready' },
      },
      active: 0,
      total: 0,
      idleSinceMs: nowMs,
      freeAt: -1,
    }
    this.#hands.set(name, hand)
    this.#setFree(hand, true)
  }

  /** The worker has one Run more. */
  give(name: string): SimulatedWorker {
    const hand = this.#hands.get(name)
    if (!hand) throw new Error(`bug: a Run was given to ${name}, which is not there`)
    if (hand.active++ === 0) this.#busy++
    hand.total++
    this.loads.set(name, withRun(this.loads.get(name), 1, noNeeds))
    // A one-shot worker gets all its Runs in one decision: from then on it says that it is busy.
    if (this.#isOneShot || hand.active >= this.slots) this.#setFree(hand, false)
    return hand
  }

  /** A Run of the worker has ended. */
  takeBack(hand: SimulatedWorker, nowMs: number): void {
    const { name } = hand.worker.metadata
    hand.active--
    if (hand.active === 0) this.#busy--
    this.loads.set(name, withRun(this.loads.get(name), -1, noNeeds))
    if (this.#isOneShot) {
      if (hand.active === 0) this.#remove(hand)
      return
    }
    if (hand.active === 0) hand.idleSinceMs = nowMs
    this.#setFree(hand, true)
  }

  /** Lets spare idle workers go whose time is over, the longest idle ones first. Returns when to look again; Infinity: no need. */
  letGo(wanted: number, nowMs: number): number {
    const { surplus } = this.size(wanted, nowMs)
    if (surplus <= 0) return Number.POSITIVE_INFINITY
    const idle = this.free.filter(({ active }) => active === 0).sort((a, b) => a.idleSinceMs - b.idleSinceMs)
    let againMs = Number.POSITIVE_INFINITY
    for (const hand of idle.slice(0, surplus)) {
      const untilMs = hand.idleSinceMs + this.#idleTimeoutMs
      if (nowMs >= untilMs) this.#remove(hand)
      else againMs = Math.min(againMs, untilMs)
    }
    return againMs
  }

  /** When {@link letGo} has something to do at the earliest, for a worker that is idle from `nowMs` on. */
  idleUntilMs(nowMs: number): number {
    return nowMs + this.#idleTimeoutMs
  }

  get #isOneShot(): boolean {
    return this.spec.lifecycle !== 'Warm'
  }

  #remove(hand: SimulatedWorker): void {
    const { name } = hand.worker.metadata
    this.#setFree(hand, false)
    this.#hands.delete(name)
    this.loads.delete(name)
  }

  #setFree(hand: SimulatedWorker, isFree: boolean): void {
    if (isFree === hand.freeAt >= 0) return
    if (isFree) {
      hand.freeAt = this.free.push(hand) - 1
      return
    }
    const last = this.free.pop()!
    if (last !== hand) {
      this.free[hand.freeAt] = last
      last.freeAt = hand.freeAt
    }
    hand.freeAt = -1
  }
}
