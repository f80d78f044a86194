/**
 * @module app/pool-agent: worker processes on this host, for controllers that run elsewhere. Start reading at `decide-claims.ts`, then `pool-agent.ts`.
 * In: Workers with `spec.start`, which the dispatch controller creates. Out: their processes, and in their status who claimed them and why a start
 * failed. It talks to the API server only; processes register themselves and outlive it.
 * Out of scope: how many workers there are and which Run they get (`controllers/dispatch/`), how a process is started (`../process-pool/`).
 */
export { type PoolRole, type PoolRoleOptions, startPool } from './start-pool.ts'
