import { availableParallelism } from 'node:os'
import { RequestThread } from '../../kubernetes/util/index.ts'
import type { FleetSpec, PoolConfig, SimulationResult } from './simulate-fleet.ts'

/** Simulates the fleet once for each size, on one thread per core. Results are in the order of `sizes`. */
export async function simulateSizes(
  fleet: FleetSpec,
  pool: Omit<PoolConfig, 'max'>,
  sizes: readonly number[],
): Promise<SimulationResult[]> {
  const results: SimulationResult[] = []
  let next = 0
  const work = async () => {
    const thread = new RequestThread<SimulationRequest, SimulationResult>('controllers/simulate/simulate-thread', {
      name: 'oarlock-simulate',
    })
    try {
      while (next < sizes.length) {
        const index = next++
        results[index] = await thread.request({ fleet, pool: { ...pool, max: sizes[index]! } })
      }
    } finally {
      await thread.terminate()
    }
  }
  await Promise.all(Array.from({ length: Math.min(sizes.length, availableParallelism()) }, work))
  return results
}

/** One simulation: the fleet on this pool. */
export type SimulationRequest = { readonly fleet: FleetSpec; readonly pool: PoolConfig }
