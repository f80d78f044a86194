/**
 * @module workspace/isolation: what a Run may see and use. Start reading at `run-isolation.ts`; `levels.ts` says what this machine can do.
 * In: a level, limits, the Run's directory. Out: how its programs start (in a cgroup, in a sandbox), what they used, and a call when they
 * used too much. A level that cannot be had is said with its reason; nothing weaker is ever taken instead.
 * Not here: what happens to a Run that used too much (that is `worker/`), and killing (that is `workspace/process/`).
 */
export { availableIsolationLevels, type IsolationProbe, probeIsolation } from './probe-isolation.ts'
export { type ExceededLimit, formatBytes, parseRunLimits, type RunLimits } from './resource-limits.ts'
export {
  type EffectiveIsolation,
  type LimitEnforcement,
  machineOomKills,
  RunIsolation,
  type RunIsolationOptions,
  type RunUsage,
} from './run-isolation.ts'
