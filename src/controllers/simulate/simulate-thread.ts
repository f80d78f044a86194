/** The thread of `simulate-sizes.ts`: plays one size after the other. */
import { parentPort } from 'node:worker_threads'
import { simulateFleet } from './simulate-fleet.ts'
import type { Question } from './simulate-sizes.ts'

parentPort?.on('message', ({ fleet, shape }: Question) => parentPort?.postMessage(simulateFleet(fleet, shape)))
