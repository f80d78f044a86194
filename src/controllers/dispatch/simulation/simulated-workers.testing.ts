import { type CrashReason, isEnded, labels, type RunPhase, type Worker, type WorkerPool } from '../../../api/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import type { DispatchEvent } from '../dispatch-event.ts'
import { testWorker } from '../objects.testing.ts'
import type { LossReason } from '../pool/index.ts'
import type { SimulatedApiServer } from './simulated-api-server.testing.ts'
import type { Simulation } from './simulation.testing.ts'

type SimulatedWorker = {
  readonly name: string
  readonly isOneShot: boolean
  /** It neither renews its Lease nor works. */
  isPaused: boolean
  /** True: it renews its Lease and starts no Runs. */
  isStuck: boolean
  renewedAtMs: number
  readonly runs: Map<string, { readonly startedMs: number; remainingMs: number }>
}

/** Started processes that have not ended; `registersAtMs` is undefined once they have registered. */
type SimulatedProcess = {
  readonly pool: WorkerPool
  readonly startedMs: number
  readonly trustDomain: string | undefined
  registersAtMs: number | undefined
}

/** Workers that execute Runs, and the processes that the driver of a pool has started for them. */
export class SimulatedWorkers {
  /** How long each Run takes. */
  readonly durationsMs = new Map<string, number>()
  /** By pool: from the start of a process to its registration. */
  readonly startupMs = new Map<string, number>()
  /** `oarlock pool` starts the processes on other hosts: nothing is observed of one that has registered. */
  areOnOtherHosts = false
  /** Pools whose workers leave their Worker to the controller. */
  readonly leaving = new Set<string>()
  readonly #simulation: Simulation
  readonly #server: SimulatedApiServer
  readonly #workers = new Map<string, SimulatedWorker>()
  readonly #processes = new Map<string, SimulatedProcess>()
  /** Workers whose Pod has succeeded. */
  readonly #succeeded = new Set<string>()
  readonly #onRunEnded: (key: string, startedMs: number) => void

  /** @param onRunEnded called for each Run that has used a slot, before its result is written. */
  constructor(simulation: Simulation, server: SimulatedApiServer, onRunEnded: (key: string, startedMs: number) => void) {
    this.#simulation = simulation
    this.#server = server
    this.#onRunEnded = onRunEnded
  }

  /** When the worker has last renewed its Lease; undefined if it does not exist. */
  renewedAtMs(name: string): number | undefined {
    return this.#workers.get(name)?.renewedAtMs
  }

  /** Runs that are being executed, with the time of their start. */
  *activeRuns(): Generator<{ readonly key: string; readonly startedMs: number }> {
    for (const { runs } of this.#workers.values()) for (const [key, { startedMs }] of runs) yield { key, startedMs }
  }

  register(worker: Worker): void {
    const { name } = worker.metadata
    const isOneShot = worker.spec.lifecycle === 'OneShot'
    this.#workers.set(name, { name, isOneShot, isPaused: false, isStuck: false, runs: new Map(), renewedAtMs: this.#simulation.nowMs })
    this.#server.createWorker(worker)
  }

  /** The worker ends, and its Worker and Lease are deleted. */
  remove(name: string): void {
    this.#workers.delete(name)
    this.#succeeded.delete(name)
    this.#server.deleteWorker(name)
  }

  pause(name: string): void {
    this.#worker(name).isPaused = true
  }

  resume(name: string): void {
    this.#worker(name).isPaused = false
    for (const [key, run] of this.#server.runs)
      if (run.spec.workerName === name && (run.status?.phase ?? 'Assigned') === 'Assigned') this.accept(key, name)
  }

  block(name: string): void {
    this.#worker(name).isStuck = true
  }

  /** The worker starts a Run that was assigned to it. */
  accept(key: string, name: string): void {
    const worker = this.#workers.get(name)
    if (!worker || worker.isPaused || worker.isStuck) return
    worker.runs.set(key, { startedMs: this.#simulation.nowMs, remainingMs: this.durationsMs.get(key)! })
    this.#server.changeRun(key, run => ({ ...run, status: { phase: 'Applying' } }))
  }

  /** Has no effect on a Run that the worker has not accepted. */
  cancel(key: string, name: string | undefined): void {
    const worker = this.#workers.get(name ?? '')
    if (worker?.runs.has(key) && !worker.isPaused) this.#end(key, worker, 'Canceled')
  }

  renew(): void {
    for (const worker of this.#workers.values())
      if (!worker.isPaused && this.#server.renewLease(worker.name)) worker.renewedAtMs = this.#simulation.nowMs
  }

  // ---- processes

  startProcess(name: string, pool: WorkerPool, trustDomain: string | undefined): void {
    const startedMs = this.#simulation.nowMs
    const registersAtMs = startedMs + (this.startupMs.get(pool.metadata.name) ?? 1_000)
    this.#processes.set(name, { pool, startedMs, trustDomain, registersAtMs })
  }

  countProcesses(pool: string): number {
    return [...this.#processes.values()].filter(process => process.pool.metadata.name === pool).length
  }

  hasProcess(name: string): boolean {
    return this.#processes.has(name)
  }

  /** What a new leader learns from the driver. */
  *listProcesses(): Generator<DispatchEvent> {
    for (const [name, { pool, startedMs, trustDomain }] of this.#processes)
      yield { kind: 'ProcessObserved', process: { name, pool: pool.metadata.name, startedMs, trustDomain } }
    for (const worker of this.#succeeded) yield { kind: 'WorkerExited', worker, exitCode: 0 }
  }

  /** The process of a worker ends; its Worker and Lease remain. */
  exit(name: string, { crash, loss }: { crash?: CrashReason; loss?: LossReason } = {}): void {
    this.#processes.delete(name)
    const worker = this.#workers.get(name)
    if (worker) {
      worker.isPaused = true
      worker.runs.clear()
    }
    const message = loss ? `Pod workers/${name}: ${loss}` : `worker ${name} was ended by SIGSEGV`
    const failure = (crash || loss) && {
      message,
      ...(crash && { crash: { reason: crash, message } }),
      ...(loss && { loss: { reason: loss, message } }),
    }
    this.#simulation.observe({ kind: 'WorkerExited', worker: name, exitCode: undefined, failure })
  }

  /** A process that has not registered is stopped. */
  withdraw(name: string): void {
    if (this.#processes.get(name)?.registersAtMs !== undefined) this.#processes.delete(name)
  }

  /** The worker deregisters, and its process exits with code 1. */
  fail(name: string): void {
    this.drain(name)
    this.#simulation.observe({ kind: 'WorkerExited', worker: name, exitCode: 1 })
  }

  /** The worker deregisters, and its process ends. */
  drain(name: string): void {
    this.remove(name)
    this.#processes.delete(name)
  }

  // ---- time

  /** When a Run ends or a process registers; Infinity if none does. */
  nextMs(): number {
    const ends = [...this.#workers.values()].flatMap(({ runs, isPaused }) =>
      isPaused ? [] : [...runs.values()].map(({ remainingMs }) => this.#simulation.nowMs + remainingMs),
    )
    return Math.min(...ends, ...[...this.#processes.values()].flatMap(({ registersAtMs }) => registersAtMs ?? []))
  }

  work(ms: number): void {
    for (const { runs, isPaused } of this.#workers.values()) if (!isPaused) for (const run of runs.values()) run.remainingMs -= ms
  }

  /** Ends Runs and registers workers that are due. */
  processEvents(): void {
    for (const worker of [...this.#workers.values()]) {
      if (worker.isPaused) continue
      for (const [key, { remainingMs }] of worker.runs) if (remainingMs <= 0) this.#end(key, worker, 'Succeeded')
    }
    for (const [name, process] of this.#processes) {
      if (process.registersAtMs === undefined || process.registersAtMs > this.#simulation.nowMs) continue
      process.registersAtMs = undefined
      const { metadata, spec } = process.pool
      const { slots = 1, lifecycle = 'OneShot' } = spec
      const worker = testWorker(name, { pool: metadata.name, slots, lifecycle, status: { isolation: ['Process', 'Pod'] } })
      const { trustDomain } = process
      const pod = { namespace: 'workers', serviceAccountName: 'default' }
      const own = { ...(spec.mode === 'Pod' && { pod }), ...(trustDomain !== undefined && { trustDomain }) }
      const leaves = this.leaving.has(metadata.name) && { labels: { [labels.worker]: name } }
      this.register({ ...worker, metadata: { ...worker.metadata, ...leaves }, spec: { ...worker.spec, ...own } })
      if (this.areOnOtherHosts)
        this.#simulation.observe({ kind: 'ProcessObserved', process: { name, pool: metadata.name, isReleased: true } })
    }
  }

  #worker(name: string): SimulatedWorker {
    const worker = this.#workers.get(name)
    if (!worker) throw new Error(`unknown worker ${JSON.stringify(name)}`)
    return worker
  }

  #end(key: string, worker: SimulatedWorker, phase: RunPhase): void {
    const { name, isOneShot, runs } = worker
    const { startedMs } = runs.get(key)!
    runs.delete(key)
    this.#onRunEnded(key, startedMs)
    const finishedAt = rfc3339(this.#simulation.nowMs)
    // A Run that was declared lost is no longer its worker's.
    if (isEnded(this.#server.runs.get(key)!)) this.#simulation.print(`${name}: result of ${key} rejected`)
    else this.#server.changeRun(key, run => ({ ...run, status: { phase, finishedAt } }))
    if (!isOneShot) return
    if (this.leaving.has(this.#processes.get(name)?.pool.metadata.name ?? '')) {
      worker.isPaused = true
      this.#succeeded.add(name)
    } else this.remove(name)
    this.#processes.delete(name)
    if (!this.areOnOtherHosts) this.#simulation.observe({ kind: 'WorkerExited', worker: name, exitCode: 0 })
  }
}
