/** The thread of `simulate-sizes.ts`: plays one size after the other. */
import { parentPort } from 'node:worker_threads'
import { simulateFleet } from './simulate-fleet.ts'
import type { SimulationRequest } from './simulate-sizes.ts'

parentPort?.on('message', ({ fleet, pool }: SimulationRequest) => parentPort?.postMessage(simulateFleet(fleet, pool)))
