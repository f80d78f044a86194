import type { Worker } from '../../api/index.ts'

/** How many Runs a Worker works on, what they asked for together, and how many it ever got. */
export type WorkerLoad = {
  readonly active: number
  readonly total: number
  /** Default 0. */
  readonly cpuMillis?: number
  /** Default 0. */
  readonly memoryBytes?: number
}

/** By Worker. One that is missing has none. */
export type WorkerLoads = ReadonlyMap<string, WorkerLoad>

export const noLoad: WorkerLoad = { active: 0, total: 0 }

/** Whether the Worker takes Runs at all. */
export function isSchedulable(worker: Worker): boolean {
  return !worker.spec.drain && !worker.metadata.deletionTimestamp && (worker.status?.phase ?? 'Ready') !== 'Draining'
}

/** A one-shot worker takes as many Runs as it has slots in its whole life; afterwards it is about to exit. */
export function isExhausted({ spec }: Worker, { total }: WorkerLoad): boolean {
  return spec.lifecycle === 'OneShot' && total >= spec.slots
}

/** The load with one Run more, or less. `total` only ever rises. */
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

/** How many more Runs it can take now. A worker without a status has not said that it is ready. */
export function freeSlots(worker: Worker, { active, total }: WorkerLoad): number {
  if (!worker.status || !isSchedulable(worker)) return 0
  const { slots, lifecycle } = worker.spec
  // One that says Busy may still have free slots; a one-shot that does has had its Runs.
  const free = lifecycle === 'OneShot' ? (worker.status.phase === 'Ready' ? slots - total : 0) : slots - active
  return Math.max(0, free)
}
