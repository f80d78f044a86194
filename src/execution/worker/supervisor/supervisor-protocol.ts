import type { InterruptTarget } from '../../workspace/process/index.ts'
import type { FenceTimings } from '../lease/decide-fence.ts'

/**
 * Raise it with every change that an older worker or supervisor would misread. Each version has its own supervisor on a host, so that an upgrade
 * does not interrupt the Runs of workers that still run: see `connect-supervisor.ts`.
 */
export const protocolVersion = 3

/** Where the supervisor saves a state file if the worker cannot. */
export type SalvageTarget = {
  /** Such as `https://127.0.0.1:7466/state/apps/network/run/network-1a2b3-4/state`. */
  url: string
  /** The Unix socket of the server on this machine; undefined: the host and port of `url`. */
  socketPath?: string
  caCertificate?: string
  token: string
  epoch: number
  path: string
}

/**
 * A Run that the supervisor cleans up after. `endsByMs`: when it must have ended, by `bootMs`, even if its worker renews its Lease.
 * `interrupt`: whom SIGINT goes to; default: Group.
 */
export type SupervisedRunSpec = {
  uid: string
  directory: string
  salvage: SalvageTarget | undefined
  endsByMs?: number
  interrupt?: InterruptTarget
}

/** Identifies a worker: process ids are reused, and a process may run several workers. */
export type WorkerIdentity = { id: string; pid: number; startTime: string }

/** From a worker to the supervisor of its host, one JSON object per line. Secrets travel here and not in arguments (invariant 9). */
export type SupervisorMessage =
  /** `renewedAtMs` as in `renewed`: a supervisor that takes over continues with the deadline of the one before (invariant 2). */
  | { kind: 'hello'; worker: WorkerIdentity; times: FenceTimings; runsDir: string; renewedAtMs: number }
  /** Before this time (`bootMs`) the last successful renewal was sent. From the worker, and from its heartbeat's thread. */
  | { kind: 'renewed'; worker: WorkerIdentity; atMs: number }
  | { kind: 'run'; run: SupervisedRunSpec }
  /** The worker's credential was renewed: an earlier one may expire before a long Run ends. */
  | { kind: 'credential'; token: string }
  | { kind: 'started'; uid: string; processGroupId: number }
  | { kind: 'ended'; uid: string; processGroupId: number }
  /** The worker sent SIGINT to the engine; a second one would make it drop what it has not saved. */
  | { kind: 'interrupted'; uid: string }
  /** The store has this version of the state file: sha256 in hex. */
  | { kind: 'saved'; uid: string; digest: string }
  /** The Run has ended and is cleaned up. */
  | { kind: 'done'; uid: string }
  /** The supervisor takes over the Run, as if the worker had exited. */
  | { kind: 'abandoned'; uid: string }
  /** The worker exits regularly, or has connected to another supervisor. */
  | { kind: 'disconnect' }

export type SupervisorReply =
  /** Sent to each client that connects, unasked: the kernel accepts connections for a paused supervisor too. */
  | { kind: 'ready'; pid: number }
  /** The response to each renewal from the worker itself. */
  | { kind: 'alive' }
  /** The Run's engines are now killed even if worker and supervisor are killed together; the worker must hold `fifo` open. */
  | { kind: 'armed'; uid: string; fifo: string }
  /** The supervisor sent SIGINT to the engine: neither the worker nor the next supervisor sends another. */
  | { kind: 'interrupted'; uid: string }
  /** The abandoned Run is cleaned up, as far as possible. */
  | { kind: 'finished'; uid: string }

/** In a Run's directory, followed by a process id: that process owns it. Contains its start time, since process ids are reused. */
export const ownerPrefix = 'owner-'
/** In a Run's directory: the supervisor could not save the state file, a user may need it. */
export const unsavedMarkerName = 'unsaved-state'
/** In a Run's directory, readable only by its owner: what a later supervisor needs if worker and supervisor were killed together. */
export const recordName = 'supervised-run.json'
/** In a Run's directory: a pipe that worker and supervisor hold open. When it closes, both have exited. */
export const fifoName = 'alive'

/** A message is much shorter. More without a newline is not this protocol (invariant 10). */
const maxLineLength = 1 << 20

/** Parses a stream of JSON lines; after one that is no JSON object, or that is too long, it calls `onInvalid` and reads nothing more. */
export function onJsonLines<T>(
  stream: { on(event: 'data', listener: (chunk: string) => void): unknown },
  onMessage: (message: T) => void,
  onInvalid: () => void,
): void {
  let text = ''
  let isInvalid = false
  stream.on('data', chunk => {
    if (isInvalid) return
    text += chunk
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    const messages = lines.map(parseObject)
    if (text.length > maxLineLength) messages.push(undefined)
    for (const message of messages) {
      if (message === undefined) {
        isInvalid = true
        onInvalid()
        return
      }
      onMessage(message as T)
    }
  })
}

function parseObject(line: string): object | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
