/**
 * @module testing: what operator authors test with, the library `oarlock/testing`. Start reading at `start-test-server.ts`.
 * In: declared kinds, a seed, rates of faults. Out: a real API server in a few hundred milliseconds, time that a test moves,
 * an order of steps that a seed replays, and a client that fails as networks and servers do.
 * Not done here: a fake API server. What runs is the embedded one, so what passes here passes there.
 */
export { type FaultCounts, type Faults, withFaults } from './fault-client.ts'
export { reconcileRequest } from './reconcile-request.ts'
export { seededRandom } from './seeded-random.ts'
export { SeededScheduler } from './seeded-scheduler.ts'
export { startTestServer, type TestServer, type TestServerOptions } from './start-test-server.ts'
export { VirtualTimers } from './virtual-timers.ts'
