import type { Run, Worker, WorkerPool } from '../../api/index.ts'
import type { StartState } from '../pool/index.ts'

export type Waiting = { readonly run: Run; readonly reason: WaitReason; readonly message: string }
export type WaitReason = 'PoolNotFound' | 'PoolHasNoRoom' | 'WorkerStartFailed' | 'NoWorker'

export type WaitingInput = {
  /** By pool: Runs that got no Worker, in order. */
  readonly left: ReadonlyMap<string, readonly Run[]>
  readonly workers: readonly Worker[]
  readonly pools: readonly WorkerPool[]
  readonly starts: ReadonlyMap<string, StartState>
  readonly nowMs: number
}

/** What the Runs that got no Worker wait for, each pool's in the order in which they will get one. */
export function explainWaiting({ left, workers, pools, starts, nowMs }: WaitingInput): Waiting[] {
  const byName = new Map(pools.map(pool => [pool.metadata.name, pool]))
  const known = [...byName.keys()]
  return [...left].flatMap(([name, runs]): Waiting[] => {
    const pool = byName.get(name)
    if (!pool) {
      const message = `there is no WorkerPool ${name}; there ${known.length === 1 ? 'is' : 'are'} ${known.join(', ') || 'none'}`
      return runs.map(run => ({ run, reason: 'PoolNotFound', message }))
    }
    const state = starts.get(name)
    const hands = workers.filter(worker => worker.spec.pool === name).length + (state?.starting.length ?? 0)
    const why = waitReason(pool, hands, state, nowMs)
    return runs.map(run => ({ run, ...why }))
  })
}

function waitReason(
  pool: WorkerPool,
  hands: number,
  state: StartState | undefined,
  nowMs: number,
): { reason: WaitReason; message: string } {
  const { name } = pool.metadata
  if (pool.spec.mode === 'External') {
    if (hands > 0) return { reason: 'NoWorker', message: `every worker of pool ${name} is busy` }
    return { reason: 'NoWorker', message: `no worker of pool ${name} has joined; start one with: oarlock worker --pool ${name}` }
  }
  if ((pool.spec.max ?? 4) === 0) return { reason: 'PoolHasNoRoom', message: `pool ${name} has max 0` }
  if (state && state.failures > 0 && nowMs < state.notBeforeMs) {
    return { reason: 'WorkerStartFailed', message: `workers of pool ${name} do not start: ${state.lastError}` }
  }
  return { reason: 'NoWorker', message: `every worker of pool ${name} is busy or starting` }
}
