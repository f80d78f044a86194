/**
 * @module workspace: the private place of a Run: its directory, its source, its processes. Start reading at `source.ts` and `process/`.
 * In: a source as written in a Stack, a revision, a Run's UID. Out: files in a directory, programs run to their end with nothing left behind.
 * No path leaves its root, no secret stands in an argument, a URL or a message (invariant 9), every cache has a limit (invariant 10).
 * Not here: engines, state, logs, or who may run what.
 */
export {
  availableIsolationLevels,
  type EffectiveIsolation,
  type ExceededLimit,
  formatBytes,
  type IsolationProbe,
  machineOomKills,
  parseRunLimits,
  probeIsolation,
  RunIsolation,
  type RunLimits,
  type RunUsage,
} from './isolation/index.ts'
export {
  cgroupOfRun,
  createLineSplitter,
  createProcessRunner,
  type ExitResult,
  findDelegatedCgroup,
  findRunProcesses,
  groupExists,
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
} from './process/index.ts'
export { createRunDirectory, type RunDirectory, removeTree } from './run-directory.ts'
export { fetchSource, gitCredentials, resolveRevision } from './source.ts'
export { SourceError, type SourceErrorReason } from './source-error.ts'
export type { GitCredentials, GitSource, SourceOptions } from './source-options.ts'
export { validateSource } from './validate-source.ts'
