/**
 * @module kubernetes/testing: test tools for operator authors, published as `oarlock/testing`. Start reading at `start-test-server.ts`.
 * In: declared kinds, a seed, probabilities of faults. Out: a real API server within a few hundred milliseconds, virtual time,
 * a seeded interleaving of tasks, and a client that injects faults of networks and servers.
 * Out of scope: a fake API server. Tests run against the embedded one, which behaves as in production.
 */
import '../util/check-node-version.ts'

export { seededRandom } from '../util/index.ts'
export { type FaultCounts, type Faults, withFaults } from './fault-client.ts'
export { reconcileRequest } from './reconcile-request.ts'
export { SeededScheduler } from './seeded-scheduler.ts'
export { startTestServer, type TestServer, type TestServerOptions } from './start-test-server.ts'
export { VirtualTimers } from './virtual-timers.ts'
