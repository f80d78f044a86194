import type { Worker, WorkerPool } from '../../api/index.ts'
import type { Assignment, Scheduler } from './placement/index.ts'
import { decidePools, type PoolsDecision, type StartState } from './pool/index.ts'
import { demandOf } from './pool-demand.ts'

export type ScheduleAndSizeInput = {
  readonly pools: readonly WorkerPool[]
  readonly starts: ReadonlyMap<string, StartState>
  readonly workerTemplates?: ReadonlyMap<string, Worker> | undefined
  readonly nowMs: number
}

/** Placement and pool sizes alone, as `DispatchCore` decides them: Runs are assigned, then each pool is sized for those that remain queued. */
export function scheduleAndSize(
  scheduler: Scheduler,
  { pools, starts, workerTemplates = new Map(), nowMs }: ScheduleAndSizeInput,
): PoolsDecision & { readonly assignments: readonly Assignment[] } {
  const { queue, inventory } = scheduler
  const assignments = scheduler.schedule({ nowMs, random: () => 0 })
  const demand = demandOf({ queue, inventory, pools, workerTemplates })
  return { ...decidePools({ demand, inventory, pools, starts, nowMs }), assignments }
}
