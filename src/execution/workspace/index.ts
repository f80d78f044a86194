/**
 * @module execution/workspace: the directory of a Run, its source, its isolation and its processes. Start reading at `source.ts` and `process/`.
 * In: the source of a Stack, a revision, a Run's UID. Out: files in a directory; programs that run to their end and leave no process behind.
 * No path leaves its root, no argument, URL or message contains a secret (invariant 9), and every cache has a limit (invariant 10).
 * Out of scope: engines, state, logs, and authorization.
 */

export { directoryDigest } from './directory-digest.ts'
export {
  availableIsolationLevels,
  availableNetworks,
  type EffectiveIsolation,
  type ExceededLimit,
  formatMebibytes,
  type IsolationProbe,
  machineOomKills,
  parseRunLimits,
  privateNetworkProblem,
  probeIsolation,
  RunIsolation,
  type RunLimits,
  type RunUsage,
} from './isolation/index.ts'
export {
  canMarkProcesses,
  cgroupOfRun,
  createLineSplitter,
  createProcessRunner,
  type ExitResult,
  findDelegatedCgroup,
  findRunProcesses,
  groupExists,
  type InterruptTarget,
  killGroup,
  killRunProcesses,
  killStackWriters,
  mutatedStackVariable,
  type ProcessRunner,
  type ProcessRunnerOptions,
  readStartTime,
  runUidVariable,
  type SignalEscalation,
  SpawnError,
  type SpawnOptions,
  signalGroup,
  type Unsplittable,
} from './process/index.ts'
export { createRunDirectory, type RunDirectory, removeTree } from './run-directory.ts'
export { fetchSource, gitCredentials, resolveRevision } from './source.ts'
export { SourceError, type SourceErrorReason } from './source-error.ts'
export type { GitCredentials, GitSource, SourceOptions } from './source-options.ts'
export { resolveInside } from './symlinks.ts'
export { validateSource } from './validate-source.ts'
