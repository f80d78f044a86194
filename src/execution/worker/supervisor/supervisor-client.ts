import { closeSync, constants, openSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { readStartTime } from '../../workspace/process/index.ts'
import type { FenceTimings } from '../lease/decide-fence.ts'
import { bootMs } from './clock.ts'
import { connectToSupervisor, currentSocketName, supervisorDirectory } from './connect-supervisor.ts'
import { onJsonLines, type SupervisedRunSpec, type SupervisorReply, type WorkerIdentity } from './supervisor-protocol.ts'
import { type RunMessage, type SessionAction, type SessionEvent, SupervisorSession } from './supervisor-session.ts'
import { SupervisorUnavailableError } from './supervisor-unavailable-error.ts'

/** Unique on this host. Not a UUID: node:crypto takes 5 ms to load. */
const newId = (): string => `${process.pid}-${Math.random().toString(36).slice(2)}`

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
 * The worker's connection to the supervisor of its host: executes what {@link SupervisorSession} decides. If no supervisor can be kept running
 * it calls `onLost`: without a supervisor no engine may run (invariant 2).
 */
export class SupervisorClient {
  readonly worker: WorkerIdentity = { id: newId(), pid: process.pid, startTime: readStartTime(process.pid) ?? '' }
  readonly #options: SupervisorClientOptions
  readonly #session: SupervisorSession
  readonly #runs = new Map<string, SupervisedRun>()
  #ready = Promise.withResolvers<void>()
  #isReady = false
  #socket: Socket | undefined

  constructor(options: SupervisorClientOptions) {
    this.#options = options
    this.#session = new SupervisorSession({ worker: this.worker, ...options })
    void this.#connect()
  }

  /** Resolves when a supervisor has replied, rejects with {@link SupervisorUnavailableError}; while the worker connects to the next one, when that has. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** Process id of the current supervisor; undefined while disconnected. */
  get pid(): number | undefined {
    return this.#session.pid
  }

  renewed(atMs: number): void {
    this.#step({ kind: 'renewed', atMs })
  }

  /** The credential with which the supervisor saves states from now on. */
  renewCredential(token: string): void {
    this.#step({ kind: 'credential', token })
  }

  /** Supervises a Run; its engine may start when `armed` has resolved. */
  supervise(run: SupervisedRunSpec): SupervisedRun {
    const supervised = new SupervisedRun(
      run.uid,
      message => this.#step({ kind: 'report', message }),
      () => this.#runs.delete(run.uid),
    )
    this.#runs.set(run.uid, supervised)
    this.#step({ kind: 'supervise', run })
    return supervised
  }

  /** Disconnects; the supervisor then leaves this worker's Runs alone. */
  close(): void {
    for (const run of this.#runs.values()) run.release()
    this.#step({ kind: 'close' })
  }

  #step(event: SessionEvent): void {
    for (const action of this.#session.step(event, bootMs())) this.#execute(action)
  }

  #execute(action: SessionAction): void {
    switch (action.kind) {
      case 'send':
        // A write to a socket with buffer space reaches the kernel before this returns, so the message survives the worker.
        this.#socket?.write(`${JSON.stringify(action.message)}\n`)
        return
      case 'connect':
        if (this.#isReady) this.#ready = Promise.withResolvers()
        this.#isReady = false
        void this.#connect()
        return
      case 'closeConnection':
        this.#socket?.end()
        this.#socket?.destroySoon()
        this.#socket = undefined
        return
      case 'checkReply':
        setTimeout(() => this.#step({ kind: 'checkReply' }), action.inMs).unref()
        return
      case 'ready':
        // From now on the connection does not keep the worker's process alive.
        this.#socket?.unref()
        this.#isReady = true
        this.#ready.resolve()
        return
      case 'runReply':
        this.#runs.get(action.reply.uid)?.handleReply(action.reply)
        return
      case 'lost':
        this.#ready.reject(this.#lostError())
        this.#options.onLost()
        return
    }
  }

  #lostError(): Error {
    const address = join(supervisorDirectory(this.#options.cacheDir), currentSocketName)
    return new SupervisorUnavailableError({ address, waitedMs: 0, problem: 'ended each time shortly after its start' })
  }

  async #connect(): Promise<void> {
    // The caller may not wait for it.
    this.#ready.promise.catch(() => {})
    let connection: Awaited<ReturnType<typeof connectToSupervisor>>
    try {
      connection = await connectToSupervisor(this.#options.cacheDir)
    } catch (error) {
      this.#ready.reject(error)
      this.#step({ kind: 'connectFailed' })
      return
    }
    const { socket, path } = connection
    this.#socket = socket
    socket.setEncoding('utf8')
    socket.on('error', () => {})
    const onReply = (reply: SupervisorReply): void => {
      if (this.#socket === socket) this.#step({ kind: 'reply', reply })
    }
    onJsonLines<SupervisorReply>(socket as unknown as Parameters<typeof onJsonLines>[0], onReply, () => socket.destroy())
    socket.once('close', () => {
      if (this.#socket !== socket) return
      this.#socket = undefined
      this.#step({ kind: 'disconnected' })
    })
    this.#step({ kind: 'connected' })
    this.#options.onSocket?.(path)
  }
}

/** One supervised Run. */
export class SupervisedRun {
  readonly #uid: string
  readonly #report: (message: RunMessage) => void
  readonly #onFinished: () => void
  readonly #armed = Promise.withResolvers<void>()
  readonly #finished = Promise.withResolvers<void>()
  #fifo: number | undefined
  #isInterrupted = false

  constructor(uid: string, report: (message: RunMessage) => void, onFinished: () => void) {
    this.#uid = uid
    this.#report = report
    this.#onFinished = onFinished
    this.#armed.promise.catch(() => {})
  }

  /** Resolves when the engine would be killed even if worker and supervisor were killed together. */
  get armed(): Promise<void> {
    return this.#armed.promise
  }

  /** The supervisor has interrupted the engine. */
  get isInterrupted(): boolean {
    return this.#isInterrupted
  }

  started(processGroupId: number): void {
    this.#report({ kind: 'started', uid: this.#uid, processGroupId })
  }

  ended(processGroupId: number): void {
    this.#report({ kind: 'ended', uid: this.#uid, processGroupId })
  }

  /** The worker has interrupted the engine: the supervisor does not send SIGINT again. */
  interrupted(): void {
    this.#report({ kind: 'interrupted', uid: this.#uid })
  }

  saved(digest: string): void {
    this.#report({ kind: 'saved', uid: this.#uid, digest })
  }

  done(): void {
    this.#report({ kind: 'done', uid: this.#uid })
    this.#finish()
  }

  /**
   * Leaves the Run to the supervisor, which stops its processes, saves the state and removes the directory, as if the worker had exited.
   * Resolves when that is done, or after `timeoutMs`; the supervisor then continues.
   */
  async abandon(timeoutMs: number): Promise<void> {
    this.#report({ kind: 'abandoned', uid: this.#uid })
    await Promise.race([this.#finished.promise, delay(timeoutMs, undefined, { ref: true })])
    this.#finish()
  }

  handleReply(answer: Extract<SupervisorReply, { uid: string }>): void {
    if (answer.kind === 'interrupted') {
      this.#isInterrupted = true
      return
    }
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
