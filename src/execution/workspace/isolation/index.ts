/**
 * @module execution/workspace/isolation: what a Run may see and use. Start reading at `run-isolation.ts`; `probe-isolation.ts` detects the levels
 * that this machine supports.
 * In: a level, limits, the Run's directory. Out: how its programs are started (in a cgroup, in a sandbox), what they used, and a callback
 * when they exceeded a limit. When a level is not available the caller gets the reason; a weaker level is never used instead.
 * `monitor-usage.ts` measures processes and `monitor-disk.ts` the disk, whose limit `decide-disk.ts` enforces.
 * Out of scope: what happens to a Run that exceeded a limit (`execution/worker/`), and killing processes (`execution/workspace/process/`).
 */
export { availableIsolationLevels, availableNetworks, type IsolationProbe, probeIsolation } from './probe-isolation.ts'
export type { ReadOnlyMount } from './read-only-mounts.ts'
export { type ExceededLimit, formatMebibytes, parseRunLimits, type RunLimits } from './resource-limits.ts'
export {
  type EffectiveIsolation,
  type LimitEnforcement,
  machineOomKills,
  RunIsolation,
  type RunIsolationOptions,
  type RunUsage,
} from './run-isolation.ts'
export { epochOfHostname, sandboxHostname } from './sandbox-hostname.ts'
export { privateNetworkProblem } from './sandbox-network.ts'
