/**
 * @module console/server/offload: what takes long for a large state or a long YAML, so that controllers of the same process continue meanwhile. Start reading at `stack-tasks.ts`.
 * In: states and texts of one request. Out: their differences, resources and problems, from a process with limits of time and memory if they are large.
 * Pure: `stack-tasks.ts` and what it calls. Out of scope: who may read a state, and how it is read (`console/server/stack/`).
 */
export { type CallTasks, Offload } from './offload.ts'
