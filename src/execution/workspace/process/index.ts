/**
 * @module workspace/process: starts programs and makes sure that they are gone. Start reading at `process-runner.ts`.
 * In: a command, an exact environment, an AbortSignal. Out: lines while it runs, then an exit code, with the whole process group gone.
 * A door of its own, with nothing but Node's built-in modules behind it: the worker's supervisor loads only this and has to be light.
 * Not here: what an exit code means (that is `engine/`) and when to interrupt (that is `worker/`).
 */
export { type CgroupLimits, cgroupOfRun, findDelegatedCgroup, RunCgroup } from './cgroup.ts'
export { createLineSplitter } from './line-splitter.ts'
export { groupExists, killGroup, readStat, signalGroup } from './process-group.ts'
export {
  type Command,
  createProcessRunner,
  type ExitResult,
  type ProcessRunner,
  type ProcessRunnerOptions,
  type SignalEscalation,
  SpawnError,
  type SpawnOptions,
  type WrappedCommand,
} from './process-runner.ts'
export {
  findRunProcesses,
  killRunProcesses,
  killStackWriters,
  mutatedStackVariable,
  readStartTime,
  runUidVariable,
} from './processes-of-run.ts'
