import { hasRegistered, type Worker } from '../../api/index.ts'

/** The Runs that a Worker executes now, the resources they requested, and how many Runs it was ever assigned. */
export type WorkerLoad = {
  readonly active: number
  readonly total: number
  /** Default 0. */
  readonly cpuMillis?: number
  /** Default 0. */
  readonly memoryBytes?: number
}

/** By name of the Worker. A Worker that is missing has no load. */
export type WorkerLoads = ReadonlyMap<string, WorkerLoad>

export const noLoad: WorkerLoad = { active: 0, total: 0 }

/** Reports whether the Worker accepts Runs at all. */
export function isSchedulable(worker: Worker): boolean {
  return !worker.spec.drain && !worker.spec.cordon && !worker.metadata.deletionTimestamp && worker.status?.phase !== 'Draining'
}

/** A one-shot worker executes at most as many Runs as it has slots; after that it exits. */
export function isExhausted({ spec }: Worker, { total }: WorkerLoad): boolean {
  return spec.lifecycle === 'OneShot' && total >= spec.slots
}

/** The load with one Run more or less. `total` never decreases. */
export function withRun(
  load: WorkerLoad | undefined,
  by: 1 | -1,
  requirements: { readonly cpuMillis: number; readonly memoryBytes: number },
): WorkerLoad {
  const { active, total, cpuMillis = 0, memoryBytes = 0 } = load ?? noLoad
  return {
    active: Math.max(0, active + by),
    total: total + Math.max(0, by),
    cpuMillis: Math.max(0, cpuMillis + by * requirements.cpuMillis),
    memoryBytes: Math.max(0, memoryBytes + by * requirements.memoryBytes),
  }
}

/** How many more Runs the Worker can accept now. */
export function freeSlots(worker: Worker, { active, total }: WorkerLoad): number {
  if (!worker.status || !hasRegistered(worker) || !isSchedulable(worker)) return 0
  const { slots, lifecycle } = worker.spec
  // A warm worker in phase Busy may have free slots; a one-shot worker in phase Busy has been assigned its Runs.
  const free = lifecycle === 'OneShot' ? (worker.status.phase === 'Ready' ? slots - total : 0) : slots - active
  return Math.max(0, free)
}
