import type { SimulatedApiServer } from './simulated-api-server.testing.ts'
import type { SimulatedWorkers } from './simulated-workers.testing.ts'
import type { Simulation } from './simulation.testing.ts'

/** Checks what must hold at every instant, and prints each violation. */
export class Invariants {
  leaseMs: number
  /** Since when the present leader leads. */
  leadsSinceMs: number
  readonly #simulation: Simulation
  readonly #server: SimulatedApiServer
  readonly #workers: SimulatedWorkers

  constructor(simulation: Simulation, server: SimulatedApiServer, workers: SimulatedWorkers, leaseMs: number) {
    this.#simulation = simulation
    this.#server = server
    this.#workers = workers
    this.leaseMs = leaseMs
    this.leadsSinceMs = simulation.nowMs
  }

  /** A suspect gets no Runs. A leader knows renewals from its start on. */
  checkSuspect(worker: string): void {
    const silentMs = this.#simulation.nowMs - Math.max(this.#workers.renewedAtMs(worker) ?? 0, this.leadsSinceMs)
    if (silentMs >= this.leaseMs / 2) this.#violation(`a Run is assigned to ${worker}, which has been silent for ${silentMs} ms`)
  }

  /** Checked when an assignment is written. */
  checkAssignment(run: string): void {
    if (this.#server.runs.get(run)?.spec.workerName !== undefined) this.#violation(`${run} is assigned twice`)
  }

  /** Invariant 2, checked when a Run ends as Lost. */
  checkLoss(run: string): void {
    const worker = this.#server.runs.get(run)?.spec.workerName ?? ''
    const renewedAtMs = this.#workers.renewedAtMs(worker)
    const isExpired = renewedAtMs === undefined || this.#simulation.nowMs - renewedAtMs >= this.leaseMs
    if (!isExpired) this.#violation(`${worker} is lost, and its Lease has not expired`)
  }

  /** Checked when workers have been started. */
  checkPoolMaximum(pool: string, max: number): void {
    const count = this.#workers.countProcesses(pool)
    if (count > max) this.#violation(`pool ${pool} has ${count} processes, and spec.max is ${max}`)
  }

  #violation(text: string): void {
    this.#simulation.print(`VIOLATION ${text}`)
  }
}
