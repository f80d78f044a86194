/**
 * @module workspace/isolation: what a Run may see and use. Start reading at `run-isolation.ts`; `levels.ts` says what this machine can do.
 * In: a level, limits, the Run's directory. Out: how its programs start (in a cgroup, in a sandbox), what they used, and a call when they
 * used too much. A level that cannot be had is said with its reason; nothing weaker is ever taken instead.
 * Not here: what happens to a Run that used too much (that is `worker/`), and killing (that is `workspace/process/`).
 */
export { type Availability, availableLevels, checkIsolation, type IsolationLevel, isolationLevels } from './levels.ts'
export { type Exceeded, formatBytes, parseLimits, type ResourcesLike, type RunLimits } from './limits.ts'
export {
  type IsolationInForce,
  type LimitKeeper,
  machineOomKills,
  RunIsolation,
  type RunIsolationOptions,
  type RunUsage,
} from './run-isolation.ts'
