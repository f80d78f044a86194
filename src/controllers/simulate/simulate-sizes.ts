import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { FleetSpec, PoolConfig, SimulationResult } from './simulate-fleet.ts'

/** Plays the fleet once for each size, on as many threads as the machine has cores. Results are in the order of `sizes`. */
export async function simulateSizes(
  fleet: FleetSpec,
  pool: Omit<PoolConfig, 'max'>,
  sizes: readonly number[],
): Promise<SimulationResult[]> {
  const results: SimulationResult[] = []
  let next = 0
  const work = async () => {
    // The compiler leaves URLs alone, so the built package must say .js itself.
    const script = import.meta.url.endsWith('.ts') ? './simulate-thread.ts' : './simulate-thread.js'
    const thread = new Worker(new URL(script, import.meta.url), { execArgv: [], name: 'oarlock-simulate' })
    try {
      while (next < sizes.length) {
        const index = next++
        results[index] = await simulateOn(thread, { fleet, pool: { ...pool, max: sizes[index]! } })
      }
    } finally {
      await thread.terminate()
    }
  }
  await Promise.all(Array.from({ length: Math.min(sizes.length, availableParallelism()) }, work))
  return results
}

/** What a thread is asked. */
export type SimulationRequest = { readonly fleet: FleetSpec; readonly pool: PoolConfig }

async function simulateOn(thread: Worker, question: SimulationRequest): Promise<SimulationResult> {
  const answered = once(thread, 'message')
  thread.postMessage(question)
  // An error of the thread rejects, as `once` promises.
  const [result] = await answered
  return result
}
