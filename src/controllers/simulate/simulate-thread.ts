/** The thread of `simulate-sizes.ts`: simulates one pool size after the other. */
import { serveRequests } from '../../kubernetes/util/index.ts'
import { simulateFleet } from './simulate-fleet.ts'
import type { SimulationRequest } from './simulate-sizes.ts'

serveRequests(({ fleet, pool }: SimulationRequest) => simulateFleet(fleet, pool))
