import type { FenceTimings } from '../lease/decide-fence.ts'
import type { SupervisionEvent } from './supervision.ts'
import type { SupervisorMessage, SupervisorReply, WorkerIdentity } from './supervisor-protocol.ts'

/** What the supervisor does for one worker; see `supervision.ts`. */
export type SupervisedWorkerPart = {
  handle(event: SupervisionEvent): void
  /** Resolves when every Run that this supervisor has taken over is cleaned up. */
  settled(): Promise<void>
}

export type SupervisorParts = {
  supervise(options: {
    worker: WorkerIdentity
    times: FenceTimings
    runsDir: string
    renewedAtMs: number
    answer(reply: SupervisorReply): void
  }): SupervisedWorkerPart
  /** A worker has connected whose Runs are in this directory. */
  onWorker(runsDir: string): void
  /** The supervisor does not exit before this has settled. */
  track(work: Promise<void>): void
}

const keyOf = ({ id, pid }: WorkerIdentity): string => `${pid} ${id}`

/** The workers of a supervisor, and the meaning of the messages on its connections. Reads no socket. */
export class SupervisedWorkers {
  readonly #parts: SupervisorParts
  readonly #workers = new Map<string, SupervisedWorkerPart>()

  constructor(parts: SupervisorParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#workers.size
  }

  /** For each connection. `close` ends it: what it sent cannot be handled, for example because the disk is full or it is no message. */
  connect(answer: (reply: SupervisorReply) => void, close: () => void): { onMessage(message: SupervisorMessage): void; onClose(): void } {
    let key = ''
    let supervised: SupervisedWorkerPart | undefined
    const handle = (message: SupervisorMessage): void => {
      switch (message.kind) {
        case 'hello':
          if (supervised) throw new Error('a connection has one worker')
          key = keyOf(message.worker)
          supervised = this.#parts.supervise({ ...message, answer })
          this.#workers.set(key, supervised)
          this.#parts.onWorker(message.runsDir)
          return
        case 'renewed':
          // The heartbeat's thread has a connection of its own, which supervises nothing.
          this.#workers.get(keyOf(message.worker))?.handle({ kind: 'renewed', atMs: message.atMs })
          if (supervised) answer({ kind: 'alive' })
          return
        case 'disconnect':
          if (supervised) this.#end(key, supervised, 'disconnect')
          supervised = undefined
          return
        default:
          supervised?.handle({ kind: 'message', message })
      }
    }
    return {
      onMessage: message => {
        try {
          handle(message)
        } catch {
          // A Run that cannot be supervised must not run: the worker loses its connection, and its Runs are stopped.
          close()
        }
      },
      onClose: () => {
        if (supervised) this.#end(key, supervised, 'workerExited')
        supervised = undefined
      },
    }
  }

  #end(key: string, supervised: SupervisedWorkerPart, kind: 'disconnect' | 'workerExited'): void {
    supervised.handle({ kind })
    // From now on no renewal extends a deadline. The worker may have connected again meanwhile.
    if (this.#workers.get(key) === supervised) this.#workers.delete(key)
    this.#parts.track(supervised.settled())
  }
}
