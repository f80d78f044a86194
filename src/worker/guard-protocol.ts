import type { FenceTimes } from './decide-fence.ts'

/** Where the guard saves a state file that the worker can no longer save. */
export type SalvageTarget = {
  /** Such as `https://127.0.0.1:7466/state/apps/network/run/network-1a2b3-4/state`. */
  url: string
  caCertificate?: string
  token: string
  epoch: number
  path: string
}

/** What the guard has to clean up. */
export type GuardedRun = { uid: string; directory: string; salvage: SalvageTarget | undefined }

/** From the worker to its guard, one JSON object per line on the guard's stdin. Secrets travel here and not in arguments (invariant 9). */
export type GuardMessage =
  | { kind: 'hello'; workerPid: number; times: FenceTimes }
  /** Before this instant (process.hrtime, ms) the last renewal that succeeded was sent. */
  | { kind: 'renewed'; atMs: number }
  | { kind: 'run'; run: GuardedRun }
  | { kind: 'started'; processGroupId: number }
  | { kind: 'ended'; processGroupId: number }
  /** The engine got its SIGINT from the worker; a second one would make it drop what it has not saved. */
  | { kind: 'interrupted' }
  /** The store has this version of the state file: sha256 in hex. */
  | { kind: 'saved'; digest: string }
  /** The Run is over and cleaned up. */
  | { kind: 'done' }
  /** The worker ends as it should. */
  | { kind: 'goodbye' }

/** From the guard to its worker, on the guard's stdout. */
export type GuardAnswer = { kind: 'ready' }

/** CLOCK_MONOTONIC in milliseconds: comparable between the processes of one machine, unlike `performance.now()`. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** In a Run's directory, followed by a pid: that process takes care of it. Holds its start time, since pids are reused. */
export const keeperPrefix = 'keeper-'
/** In a Run's directory: the guard could not save the state file, a person may want it. */
export const unsavedMark = 'unsaved-state'
