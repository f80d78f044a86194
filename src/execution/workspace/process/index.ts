/**
 * @module execution/workspace/process: starts programs and makes sure that they end. Start reading at `process-runner.ts`.
 * In: a command, an exact environment, an AbortSignal. Out: lines while the program runs, then an exit code, when the whole process group
 * has ended. This entry point imports only Node's built-in modules: the worker's supervisor loads nothing else and must stay small.
 * Out of scope: the meaning of an exit code (`execution/engine/`), and when to interrupt a program (`execution/worker/`).
 */
export { type CgroupLimits, cgroupOfRun, findDelegatedCgroup, ownCgroupOomKills, RunCgroup } from './cgroup.ts'
export { isExecutable } from './is-executable.ts'
export { createLineSplitter, type OutputLog, type Unsplittable } from './line-splitter.ts'
export { lowerPriority, niceValues } from './priority.ts'
export { groupExists, hasEnded, type InterruptTarget, killGroup, liveThreadPath, readStat, signalGroup } from './process-group.ts'
export { canMarkProcesses, markShell, runMark, stackMark } from './process-mark.ts'
export {
  type Command,
  createProcessRunner,
  type ExitResult,
  type ProcessRunner,
  type ProcessRunnerOptions,
  type SpawnOptions,
  type WrappedCommand,
} from './process-runner.ts'
export {
  findDescendants,
  findRunProcesses,
  isInInnerNamespace,
  isRunProcess,
  killRunProcesses,
  killStackWriters,
  mutatedStackVariable,
  readStartTime,
  runUidVariable,
} from './processes-of-run.ts'
export type { SignalEscalation } from './signal-escalation.ts'
export { SpawnError } from './spawn-error.ts'
