import type { FenceTimings } from '../lease/decide-fence.ts'

/** Where the supervisor saves a state file that the worker can no longer save. */
export type SalvageTarget = {
  /** Such as `https://127.0.0.1:7466/state/apps/network/run/network-1a2b3-4/state`. */
  url: string
  caCertificate?: string
  token: string
  epoch: number
  path: string
}

/** What the supervisor has to clean up. `endsByMs`: when it must be over at the latest, by `bootMs`, however well its worker seems. */
export type SupervisedRunSpec = { uid: string; directory: string; salvage: SalvageTarget | undefined; endsByMs?: number }

/** A worker for good: pids are reused, and a process may hold several workers. */
export type WorkerIdentity = { id: string; pid: number; startTime: string }

/** From a worker to the supervisor of its host, one JSON object per line. Secrets travel here and not in arguments (invariant 9). */
export type SupervisorMessage =
  | { kind: 'hello'; worker: WorkerIdentity; times: FenceTimings; runsDir: string }
  /** Before this instant (`bootMs`) the last renewal that succeeded was sent. From the worker, and from its heartbeat's thread. */
  | { kind: 'renewed'; worker: WorkerIdentity; atMs: number }
  | { kind: 'run'; run: SupervisedRunSpec }
  /** The worker's credential was renewed: what its Runs were told with ends before the longest of them. */
  | { kind: 'credential'; token: string }
  | { kind: 'started'; uid: string; processGroupId: number }
  | { kind: 'ended'; uid: string; processGroupId: number }
  /** The engine got its SIGINT from the worker; a second one would make it drop what it has not saved. */
  | { kind: 'interrupted'; uid: string }
  /** The store has this version of the state file: sha256 in hex. */
  | { kind: 'saved'; uid: string; digest: string }
  /** The Run is over and cleaned up. */
  | { kind: 'done'; uid: string }
  /** The rest of the Run is the supervisor's, as if the worker had died. */
  | { kind: 'abandoned'; uid: string }
  /** The worker ends as it should, or has gone over to another supervisor. */
  | { kind: 'goodbye' }

export type SupervisorReply =
  /** Said to everybody who connects, before anything is asked: a supervisor that is stopped takes connections, too. */
  | { kind: 'ready'; pid: number }
  /** To each renewal that comes from the worker itself. */
  | { kind: 'alive' }
  /** The Run's engines die also if worker and supervisor die at once; `fifo` is to be held open by the worker. */
  | { kind: 'armed'; uid: string; fifo: string }
  /** What was abandoned is cleaned up, as far as it can be. */
  | { kind: 'finished'; uid: string }

/** In a Run's directory, followed by a pid: that process takes care of it. Holds its start time, since pids are reused. */
export const ownerPrefix = 'owner-'
/** In a Run's directory: the supervisor could not save the state file, a person may want it. */
export const unsavedMarkerName = 'unsaved-state'
/** In a Run's directory, for its owner only: what a later supervisor has to know when worker and supervisor died at once. Goes with the Run. */
export const recordName = 'supervised-run.json'
/** In a Run's directory: a pipe that worker and supervisor hold open. When it closes, both are dead. */
export const fifoName = 'alive'

/** A duplex stream of JSON lines, as far as both sides need it. */
export function onJsonLines<T>(
  stream: { on(event: 'data', listener: (chunk: string) => void): unknown },
  onMessage: (message: T) => void,
): void {
  let text = ''
  stream.on('data', chunk => {
    text += chunk
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    for (const line of lines) onMessage(JSON.parse(line) as T)
  })
}
