/** Thread of `simulate-sizes.ts`: simulates one pool size per request. */
import { serveThreadRequests } from '../../kubernetes/util/index.ts'
import { simulateFleet } from './simulate-fleet.ts'
import type { SimulationRequest } from './simulate-sizes.ts'

serveThreadRequests(({ fleet, pool }: SimulationRequest) => simulateFleet(fleet, pool))
