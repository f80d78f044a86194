import type { Worker, WorkerPool, WorkerPoolSpec } from '../../../api/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import { epochMs, testPool, testRun, testWorker } from '../objects.testing.ts'
import { Scheduler } from '../placement/index.ts'
import { requestOf } from '../queue/index.ts'
import { scheduleAndSize } from '../schedule-and-size.testing.ts'
import {
  initialStartState,
  nextTimeoutMs,
  type StartFailure,
  type StartState,
  withFailed,
  withProven,
  withRegistered,
  withStarted,
  withTimeouts,
} from './start-state.ts'

export type PoolSimulationOptions = {
  spec?: Partial<WorkerPoolSpec>
  /** Time from the start of a worker until it registers. Infinity: it never registers. */
  startMs?: number | ((number: number) => number)
  runMs?: number
  /** The failure of a start; undefined if it succeeds. */
  failsWith?: (number: number, nowMs: number) => StartFailure | undefined
  /** Default: that of pools in mode Process. */
  registerWithinMs?: number
}

type SimulatedPoolWorker = { worker: Worker; runs: Map<string, number>; total: number }

/**
 * Simulates one pool on virtual time with the real deciders; workers are only start and end times. Each step of {@link PoolSimulation.advance} goes
 * to the next event; the controller decides after each, as the real controller is woken by each change.
 */
export class PoolSimulation {
  readonly pool: WorkerPool
  /** One line per event, such as `12s start 3`. */
  readonly history: string[] = []
  readonly #options: PoolSimulationOptions
  readonly #workers = new Map<string, SimulatedPoolWorker>()
  readonly #scheduler = new Scheduler()
  readonly #queue = this.#scheduler.queue
  #starts: StartState = initialStartState
  readonly #starting = new Map<string, number>()
  #counts = { started: 0, runs: 0 }
  #nextDecisionMs = 0
  nowMs = 0
  /** Highest number of registered and starting workers at one time. */
  peak = 0
  finished = 0
  interrupted = 0

  constructor(options: PoolSimulationOptions = {}) {
    this.#options = options
    this.pool = testPool('pool', { max: 1_000, ...options.spec })
  }

  get workers(): number {
    return this.#workers.size
  }
  get busy(): number {
    return [...this.#workers.values()].filter(({ runs }) => runs.size > 0).length
  }
  get starting(): number {
    return this.#starting.size
  }
  get started(): number {
    return this.#counts.started
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

  /** Replaces the controller process by another: state in memory is lost, stored state remains. */
  restartController(): void {
    const adopted = [...this.#starting.keys()]
    this.#starts = adopted.reduce((state, name) => withStarted(state, name, this.#clockMs()), initialStartState)
    this.history.push(`${this.nowMs / 1_000}s restart`)
    this.decide()
  }

  /** Kills workers; their Runs are lost and queued again. */
  kill(count: number): void {
    for (const [name, { runs }] of [...this.#workers].slice(0, count)) {
      this.#workers.delete(name)
      for (const run of runs.keys()) {
        this.#queue.end(run, this.#clockMs())
        this.#enqueue()
      }
    }
    this.decide()
  }

  advance(ms: number): void {
    const untilMs = this.nowMs + ms
    for (;;) {
      const next = Math.min(
        ...this.#starting.values(),
        ...[...this.#workers.values()].flatMap(({ runs }) => [...runs.values()]),
        this.#nextDecisionMs,
      )
      if (next > untilMs) break
      this.nowMs = Math.max(this.nowMs, next)
      this.#processEvents()
      this.decide()
    }
    this.nowMs = untilMs
  }

  decide(): void {
    const { registerWithinMs, runMs = 60_000 } = this.#options
    const nowMs = this.#clockMs()
    const expired = withTimeouts(this.#starts, nowMs, registerWithinMs)
    this.#starts = expired.state
    for (const name of expired.timedOut) this.#starting.delete(name)
    const { inventory } = this.#scheduler
    for (const { worker } of [...inventory.workers()]) inventory.delete(worker.metadata.name)
    for (const { worker, runs, total } of this.#workers.values()) inventory.set(worker, { active: runs.size, total })
    const decision = scheduleAndSize(this.#scheduler, { pools: [this.pool], starts: new Map([['pool', this.#starts]]), nowMs })
    const failuresBefore = this.#starts.failures
    let isProven = false
    for (const { key, worker: name } of decision.assignments) {
      const worker = this.#workers.get(name)!
      worker.runs.set(key, this.nowMs + runMs)
      worker.total++
      worker.worker = { ...worker.worker, status: { phase: 'Busy' } }
      this.#starts = withProven(this.#starts, name)
      isProven ||= failuresBefore > 0 && this.#starts.failures === 0
    }
    for (const { count } of decision.start) this.#start(count)
    for (const { worker } of decision.drain) {
      if ((this.#workers.get(worker)?.runs.size ?? 0) > 0) this.interrupted++
      this.#workers.delete(worker)
    }
    if (decision.drain.length > 0) this.history.push(`${this.nowMs / 1_000}s drain ${decision.drain.length}`)
    this.peak = Math.max(this.peak, this.#workers.size + this.#starting.size)
    const requeueMs = decision.requeueAfterMs ?? Number.POSITIVE_INFINITY
    const timeoutAtMs = (nextTimeoutMs(this.#starts, registerWithinMs) ?? Number.POSITIVE_INFINITY) - epochMs
    // A start that failed immediately, and a proof that starting works again, cause another decision, as in the controller.
    const hasFailed = decision.start.length > 0 && this.#starts.failures > 0
    this.#nextDecisionMs = Math.min(this.nowMs + requeueMs, timeoutAtMs, hasFailed || isProven ? this.nowMs : Number.POSITIVE_INFINITY)
  }

  #enqueue(): void {
    this.#queue.put(requestOf(testRun(`r${++this.#counts.runs}`, { pool: 'pool', atMs: this.nowMs })))
  }

  #clockMs(): number {
    return epochMs + this.nowMs
  }

  #start(count: number): void {
    const { startMs = 1_000, failsWith } = this.#options
    this.history.push(`${this.nowMs / 1_000}s start ${count}`)
    for (let i = 0; i < count; i++) {
      const number = ++this.#counts.started
      const name = `w${number}`
      this.#starts = withStarted(this.#starts, name, this.#clockMs())
      const failure = failsWith?.(number, this.nowMs)
      if (failure) this.#starts = withFailed(this.#starts, name, failure, this.#clockMs())
      else this.#starting.set(name, this.nowMs + (typeof startMs === 'function' ? startMs(number) : startMs))
    }
  }

  #processEvents(): void {
    const { lifecycle = 'OneShot', slots = 1 } = this.pool.spec
    for (const [name, atMs] of this.#starting) {
      if (atMs > this.nowMs) continue
      this.#starting.delete(name)
      this.#starts = withRegistered(this.#starts, name, this.#clockMs())
      const worker = testWorker(name, { pool: 'pool', slots, lifecycle, atMs: this.nowMs })
      this.#workers.set(name, { worker, runs: new Map(), total: 0 })
    }
    for (const [name, worker] of this.#workers) {
      for (const [run, endsMs] of worker.runs) {
        if (endsMs > this.nowMs) continue
        worker.runs.delete(run)
        this.#queue.end(run, this.#clockMs())
        this.finished++
      }
      if (worker.runs.size > 0 || worker.total === 0 || worker.worker.status?.phase !== 'Busy') continue
      if (lifecycle === 'OneShot') this.#workers.delete(name)
      else worker.worker = { ...worker.worker, status: { phase: 'Ready', idleSince: rfc3339(this.#clockMs()) } }
    }
  }
}
