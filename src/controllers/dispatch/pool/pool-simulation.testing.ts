import type { Worker, WorkerPool, WorkerPoolSpec } from '../../../api/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import { decideDispatch } from '../decide-dispatch.ts'
import { epochMs, testPool, testRun, testWorker } from '../objects.testing.ts'
import { SchedulerState, WorkerInventory } from '../placement/index.ts'
import { RunQueue, requestOf } from '../queue/index.ts'
import type { WorkerLoad } from '../worker-load.ts'
import {
  nextTimeoutMs,
  noStarts,
  type StartFailure,
  type StartState,
  withFailed,
  withProven,
  withRegistered,
  withStarted,
  withTimeouts,
} from './start-state.ts'

export type WorldOptions = {
  spec?: Partial<WorkerPoolSpec>
  /** From the start of a worker until it registers. Infinity: it never does. */
  startMs?: number | ((number: number) => number)
  runMs?: number
  /** Undefined: it starts. Else it fails so. */
  failsWith?: (number: number, nowMs: number) => StartFailure | undefined
  /** Default: that of pools of mode Process. */
  registerWithinMs?: number
}

type Hand = { worker: Worker; runs: Map<string, number>; total: number }

/**
 * One pool on virtual time: the real deciders, and workers that are nothing but times. Each step of {@link World.advance} goes to
 * the next thing that happens; the controller decides after each, as the real one is woken by each change.
 */
export class World {
  readonly pool: WorkerPool
  /** What happened, one line each: `12s start 3`, for tests to read. */
  readonly story: string[] = []
  readonly #options: WorldOptions
  readonly #hands = new Map<string, Hand>()
  readonly #queue = new RunQueue()
  readonly #memory = new SchedulerState()
  #starts: StartState = noStarts
  readonly #coming = new Map<string, number>()
  #numbers = { started: 0, runs: 0 }
  #decideAtMs = 0
  nowMs = 0
  /** The most that ever were there or starting at once. */
  peak = 0
  finished = 0
  cutOff = 0

  constructor(options: WorldOptions = {}) {
    this.#options = options
    this.pool = testPool('pool', { max: 1_000, ...options.spec })
  }

  get workers(): number {
    return this.#hands.size
  }
  get busy(): number {
    return [...this.#hands.values()].filter(({ runs }) => runs.size > 0).length
  }
  get starting(): number {
    return this.#coming.size
  }
  get started(): number {
    return this.#numbers.started
  }
  get queued(): number {
    return this.#queue.queuedIn('pool')
  }
  get starts(): StartState {
    return this.#starts
  }

  submit(count: number): void {
    for (let i = 0; i < count; i++) this.#enqueue()
    this.decide()
  }

  /** The controller process is replaced by another: what it knew only in memory is gone, what was stored is there. */
  restartController(): void {
    const adopted = [...this.#coming.keys()]
    this.#starts = adopted.reduce((state, name) => withStarted(state, name, this.#at()), noStarts)
    this.story.push(`${this.nowMs / 1_000}s restart`)
    this.decide()
  }

  /** Somebody kills a worker; its Run is lost and queued again. */
  kill(count: number): void {
    for (const [name, { runs }] of [...this.#hands].slice(0, count)) {
      this.#hands.delete(name)
      for (const run of runs.keys()) {
        this.#queue.end(run, this.#at())
        this.#enqueue()
      }
    }
    this.decide()
  }

  advance(ms: number): void {
    const untilMs = this.nowMs + ms
    for (;;) {
      const next = Math.min(
        ...this.#coming.values(),
        ...[...this.#hands.values()].flatMap(({ runs }) => [...runs.values()]),
        this.#decideAtMs,
      )
      if (next > untilMs) break
      this.nowMs = Math.max(this.nowMs, next)
      this.#happen()
      this.decide()
    }
    this.nowMs = untilMs
  }

  decide(): void {
    const { registerWithinMs, runMs = 60_000 } = this.#options
    const nowMs = this.#at()
    const expired = withTimeouts(this.#starts, nowMs, registerWithinMs)
    this.#starts = expired.state
    for (const name of expired.givenUp) this.#coming.delete(name)
    const load = new Map<string, WorkerLoad>([...this.#hands].map(([name, { runs, total }]) => [name, { active: runs.size, total }]))
    const decision = decideDispatch({
      queue: this.#queue,
      memory: this.#memory,
      examples: new Map(),
      hands: WorkerInventory.of(
        [...this.#hands.values()].map(({ worker }) => worker),
        load,
        () => 0,
      ),
      pools: [this.pool],
      starts: new Map([['pool', this.#starts]]),
      nowMs,
    })
    const failuresBefore = this.#starts.failures
    let isProven = false
    for (const { key, worker } of decision.assignments) {
      const hand = this.#hands.get(worker)!
      hand.runs.set(key, this.nowMs + runMs)
      hand.total++
      hand.worker = { ...hand.worker, status: { phase: 'Busy' } }
      this.#starts = withProven(this.#starts, worker)
      isProven ||= failuresBefore > 0 && this.#starts.failures === 0
    }
    for (const { count } of decision.start) this.#start(count)
    for (const { worker } of decision.drain) {
      if ((this.#hands.get(worker)?.runs.size ?? 0) > 0) this.cutOff++
      this.#hands.delete(worker)
    }
    if (decision.drain.length > 0) this.story.push(`${this.nowMs / 1_000}s drain ${decision.drain.length}`)
    this.peak = Math.max(this.peak, this.#hands.size + this.#coming.size)
    const requeueMs = decision.requeueAfterMs ?? Number.POSITIVE_INFINITY
    const timeoutAtMs = (nextTimeoutMs(this.#starts, registerWithinMs) ?? Number.POSITIVE_INFINITY) - epochMs
    // What failed at once, and what shows that starting works again, leads to another decision, as in the shell.
    const hasFailed = decision.start.length > 0 && this.#starts.failures > 0
    this.#decideAtMs = Math.min(this.nowMs + requeueMs, timeoutAtMs, hasFailed || isProven ? this.nowMs : Number.POSITIVE_INFINITY)
  }

  #enqueue(): void {
    this.#queue.put(requestOf(testRun(`r${++this.#numbers.runs}`, { pool: 'pool', atMs: this.nowMs })))
  }

  #at(): number {
    return epochMs + this.nowMs
  }

  #start(count: number): void {
    const { startMs = 1_000, failsWith } = this.#options
    this.story.push(`${this.nowMs / 1_000}s start ${count}`)
    for (let i = 0; i < count; i++) {
      const number = ++this.#numbers.started
      const name = `w${number}`
      this.#starts = withStarted(this.#starts, name, this.#at())
      const trouble = failsWith?.(number, this.nowMs)
      if (trouble) this.#starts = withFailed(this.#starts, name, trouble, this.#at())
      else this.#coming.set(name, this.nowMs + (typeof startMs === 'function' ? startMs(number) : startMs))
    }
  }

  #happen(): void {
    const { lifecycle = 'OneShot', slots = 1 } = this.pool.spec
    for (const [name, atMs] of this.#coming) {
      if (atMs > this.nowMs) continue
      this.#coming.delete(name)
      this.#starts = withRegistered(this.#starts, name, this.#at())
      const worker = testWorker(name, { pool: 'pool', slots, lifecycle, atMs: this.nowMs })
      this.#hands.set(name, { worker, runs: new Map(), total: 0 })
    }
    for (const [name, hand] of this.#hands) {
      for (const [run, endsMs] of hand.runs) {
        if (endsMs > this.nowMs) continue
        hand.runs.delete(run)
        this.#queue.end(run, this.#at())
        this.finished++
      }
      if (hand.runs.size > 0 || hand.total === 0 || hand.worker.status?.phase !== 'Busy') continue
      if (lifecycle === 'OneShot') this.#hands.delete(name)
      else hand.worker = { ...hand.worker, status: { phase: 'Ready', idleSince: rfc3339(this.#at()) } }
    }
  }
}
