/**
 * @module execution/workspace: the directory of a Run, its source, its isolation and its processes, and what Runs share. Start reading at `source.ts`, `process/` and `content-store.ts`.
 * In: the source of a Stack, a revision, a Run's UID. Out: files in a directory; programs that run to their end and leave no process behind.
 * No path leaves its root, no argument, URL or message contains a secret (invariant 9), and every cache has a limit (invariant 10).
 * Out of scope: engines, state, logs, and authorization.
 */

export { ContentStore, type ContentStoreOptions } from './content-store.ts'
export { listContent, removeContent, type StoredContent } from './content-store-eviction.ts'
export { directoryDigest } from './directory-digest.ts'
export { isInUse, type Release, removeUnlessUsed, takeEntry, touch, useLocked } from './entry-lock.ts'
export { EvictionOrder } from './eviction-order.ts'
export { h1Digest, type TreeBudget } from './h1-digest.ts'
export {
  availableIsolationLevels,
  availableNetworks,
  type EffectiveIsolation,
  type ExceededLimit,
  epochOfHostname,
  formatMebibytes,
  type IsolationProbe,
  machineOomKills,
  parseRunLimits,
  privateNetworkProblem,
  probeIsolation,
  type ReadOnlyMount,
  RunIsolation,
  type RunLimits,
  type RunUsage,
  sandboxHostname,
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
  lowerPriority,
  mutatedStackVariable,
  niceValues,
  ownCgroupOomKills,
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
export { completeFlights, type Flight, type FlightOptions, takeOrContinue } from './single-flight.ts'
export { fetchSource, gitCredentials, resolveRevision } from './source.ts'
export { type ArchivedEntry, archiveSource, writeArchive } from './source-archive.ts'
export { SourceError, type SourceErrorReason } from './source-error.ts'
export type { GitCredentials, GitSource, SourceOptions } from './source-options.ts'
export { resolveInside } from './symlinks.ts'
export { isAbandoned, temporaryName } from './temporary-name.ts'
export { validateSource } from './validate-source.ts'
export { type WalkedEntry, type WalkOptions, walkTree } from './walk-tree.ts'
