import { randomUUID } from 'node:crypto'
import { closeSync, constants, openSync } from 'node:fs'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { readStartTime } from '../../workspace/process/index.ts'
import type { FenceTimings } from '../lease/decide-fence.ts'
import { bootMs } from './clock.ts'
import { connectToSupervisor } from './connect-supervisor.ts'
import {
  onJsonLines,
  type SupervisedRunSpec,
  type SupervisorMessage,
  type SupervisorReply,
  type WorkerIdentity,
} from './supervisor-protocol.ts'

/** Disconnects in a row, each within `earlyDisconnectMs` of the connection, after which the worker gives up. */
const maxEarlyDisconnects = 3
const earlyDisconnectMs = 5_000
/** A supervisor without a reply for this long counts as paused. */
const unresponsiveMs = 5_000

export type SupervisorClientOptions = {
  times: FenceTimings
  renewedAtMs: number
  cacheDir: string
  runsDir: string
  /** Receives the socket of the supervisor, now and whenever another supervisor takes over. */
  onSocket?(path: string): void
  /** No supervisor can be kept running, so no engine may run. */
  onLost(): void
}

/**
 * The worker's connection to the supervisor of its host. A supervisor can be killed too: then the client finds or starts the next one
 * immediately and sends it everything it needs. If none stays, it calls `onLost`: without a supervisor no engine may run (invariant 2).
 */
export class SupervisorClient {
  readonly worker: WorkerIdentity = { id: randomUUID(), pid: process.pid, startTime: readStartTime(process.pid) ?? '' }
  readonly #options: SupervisorClientOptions
  readonly #runs = new Map<string, SupervisedRun>()
  #socket: Socket | undefined
  #ready: Promise<void>
  #pid: number | undefined
  #renewedAtMs: number
  #isClosed = false
  #earlyDisconnects = 0
  /** When the oldest renewal without a reply was sent. */
  #unansweredSinceMs: number | undefined

  constructor(options: SupervisorClientOptions) {
    this.#options = options
    this.#renewedAtMs = options.renewedAtMs
    this.#ready = this.#connect()
    this.#ready.catch(() => {})
  }

  /** Resolves when a supervisor has replied. */
  get ready(): Promise<void> {
    return this.#ready
  }

  /** Process id of the current supervisor; undefined while disconnected. */
  get pid(): number | undefined {
    return this.#pid
  }

  renewed(atMs: number): void {
    this.#renewedAtMs = Math.max(this.#renewedAtMs, atMs)
    this.#unansweredSinceMs ??= bootMs()
    this.#send({ kind: 'renewed', worker: this.worker, atMs: this.#renewedAtMs })
    // After a blocked event loop, pending replies are read first.
    if (bootMs() - this.#unansweredSinceMs > unresponsiveMs) setTimeout(() => this.#reconnectIfUnresponsive(), 500).unref()
  }

  /** A paused supervisor enforces no deadline: another one is found or started. */
  #reconnectIfUnresponsive(): void {
    if (this.#unansweredSinceMs === undefined || bootMs() - this.#unansweredSinceMs < unresponsiveMs) return
    // It reads this when it resumes, and must not treat this worker as exited.
    this.#send({ kind: 'goodbye' })
    this.#socket?.end()
    this.#socket?.destroySoon()
    const socket = this.#socket
    if (socket) this.#onDisconnect(socket, 0)
  }

  /** The credential with which the supervisor saves states from now on. */
  renewCredential(token: string): void {
    for (const run of this.#runs.values()) run.renewCredential(token)
    this.#send({ kind: 'credential', token })
  }

  /** Supervises a Run; its engine may start when `armed` has resolved. */
  supervise(run: SupervisedRunSpec): SupervisedRun {
    const supervised = new SupervisedRun(
      run,
      message => this.#send(message),
      () => this.#runs.delete(run.uid),
    )
    this.#runs.set(run.uid, supervised)
    supervised.resend()
    return supervised
  }

  /** Disconnects; the supervisor then leaves this worker's Runs alone. */
  close(): void {
    this.#isClosed = true
    for (const run of this.#runs.values()) run.release()
    this.#send({ kind: 'goodbye' })
    this.#socket?.end()
  }

  async #connect(): Promise<void> {
    const { cacheDir, runsDir, times, onSocket } = this.#options
    const { socket, path } = await connectToSupervisor(cacheDir)
    const connectedMs = bootMs()
    if (this.#isClosed) {
      socket.destroy()
      return
    }
    this.#socket = socket
    // The connection does not keep the worker's process alive.
    socket.unref()
    socket.setEncoding('utf8')
    socket.on('error', () => {})
    const answered = new Promise<void>((resolve, reject) => {
      onJsonLines<SupervisorReply>(socket as unknown as Parameters<typeof onJsonLines>[0], answer => {
        this.#unansweredSinceMs = undefined
        if (answer.kind === 'alive') return
        if (answer.kind === 'ready') {
          this.#pid = answer.pid
          resolve()
        } else this.#runs.get(answer.uid)?.handleReply(answer)
      })
      socket.once('close', () => {
        reject(new Error('the supervisor process exited'))
        this.#onDisconnect(socket, connectedMs)
      })
    })
    answered.catch(() => {})
    this.#send({ kind: 'hello', worker: this.worker, times, runsDir })
    this.#send({ kind: 'renewed', worker: this.worker, atMs: this.#renewedAtMs })
    for (const run of this.#runs.values()) run.resend()
    onSocket?.(path)
    // Until the first reply it does, because the caller waits for it.
    socket.ref()
    await answered
    socket.unref()
  }

  #onDisconnect(socket: Socket, connectedMs: number): void {
    if (this.#socket !== socket) return
    this.#socket = undefined
    this.#unansweredSinceMs = undefined
    this.#pid = undefined
    if (this.#isClosed) return
    this.#earlyDisconnects = bootMs() - connectedMs < earlyDisconnectMs ? this.#earlyDisconnects + 1 : 1
    if (this.#earlyDisconnects > maxEarlyDisconnects) {
      this.#options.onLost()
      return
    }
    this.#ready = this.#connect()
    this.#ready.catch(() => {
      if (this.#socket === undefined && !this.#isClosed) this.#options.onLost()
    })
  }

  // A write to a socket with buffer space reaches the kernel before this returns, so the message survives the worker.
  #send(message: SupervisorMessage): void {
    this.#socket?.write(`${JSON.stringify(message)}\n`)
  }
}

/** One supervised Run. */
export class SupervisedRun {
  readonly #run: SupervisedRunSpec
  readonly #send: (message: SupervisorMessage) => void
  readonly #onFinished: () => void
  readonly #groups = new Set<number>()
  readonly #armed = Promise.withResolvers<void>()
  readonly #finished = Promise.withResolvers<void>()
  #fifo: number | undefined
  #savedDigest: string | undefined
  #isInterrupted = false

  constructor(run: SupervisedRunSpec, send: (message: SupervisorMessage) => void, onFinished: () => void) {
    this.#run = run
    this.#send = send
    this.#onFinished = onFinished
    this.#armed.promise.catch(() => {})
  }

  /** Resolves when the engine would be killed even if worker and supervisor were killed together. */
  get armed(): Promise<void> {
    return this.#armed.promise
  }

  started(processGroupId: number): void {
    this.#groups.add(processGroupId)
    this.#send({ kind: 'started', uid: this.#run.uid, processGroupId })
  }

  ended(processGroupId: number): void {
    this.#groups.delete(processGroupId)
    this.#send({ kind: 'ended', uid: this.#run.uid, processGroupId })
  }

  /** The worker has interrupted the engine: the supervisor does not send SIGINT again. */
  interrupted(): void {
    this.#isInterrupted = true
    this.#send({ kind: 'interrupted', uid: this.#run.uid })
  }

  saved(digest: string): void {
    this.#savedDigest = digest
    this.#send({ kind: 'saved', uid: this.#run.uid, digest })
  }

  done(): void {
    this.#send({ kind: 'done', uid: this.#run.uid })
    this.#finish()
  }

  /**
   * Leaves the Run to the supervisor, which stops its processes, saves the state and removes the directory, as if the worker had exited.
   * Resolves when that is done, or after `timeoutMs`; the supervisor then continues.
   */
  async abandon(timeoutMs: number): Promise<void> {
    this.#send({ kind: 'abandoned', uid: this.#run.uid })
    await Promise.race([this.#finished.promise, delay(timeoutMs, undefined, { ref: true })])
    this.#finish()
  }

  /** For a later supervisor. */
  renewCredential(token: string): void {
    if (this.#run.salvage) this.#run.salvage.token = token
  }

  /** Sends the whole state of the Run, to a new supervisor. */
  resend(): void {
    const { uid } = this.#run
    this.#send({ kind: 'run', run: this.#run })
    for (const processGroupId of this.#groups) this.#send({ kind: 'started', uid, processGroupId })
    if (this.#isInterrupted) this.#send({ kind: 'interrupted', uid })
    if (this.#savedDigest) this.#send({ kind: 'saved', uid, digest: this.#savedDigest })
  }

  handleReply(answer: Extract<SupervisorReply, { uid: string }>): void {
    if (answer.kind === 'finished') {
      this.#finished.resolve()
      return
    }
    try {
      // Opened for reading too, so that opening does not wait for a reader.
      this.#fifo ??= openSync(answer.fifo, constants.O_RDWR | constants.O_NONBLOCK)
      this.#armed.resolve()
    } catch (error) {
      // Its directory was removed: the supervisor has ended the Run, and none of its programs may start.
      this.#armed.reject(error)
    }
  }

  release(): void {
    if (this.#fifo !== undefined) closeSync(this.#fifo)
    this.#fifo = undefined
  }

  #finish(): void {
    this.release()
    this.#onFinished()
  }
}
