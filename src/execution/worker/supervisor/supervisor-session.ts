import type { FenceTimings } from '../lease/decide-fence.ts'
import type { SupervisedRunSpec, SupervisorMessage, SupervisorReply, WorkerIdentity } from './supervisor-protocol.ts'

/** Disconnects in a row, each within `earlyDisconnectMs` of the connection, after which the worker gives up. */
const maxEarlyDisconnects = 3
const earlyDisconnectMs = 5_000
/** A supervisor without a reply for this long counts as paused. */
const unresponsiveMs = 5_000
/** After a blocked event loop, pending replies are read first. */
const catchUpMs = 500

export type SessionEvent =
  | { readonly kind: 'connected' }
  /** No supervisor can be found or started. */
  | { readonly kind: 'connectFailed' }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'reply'; readonly reply: SupervisorReply }
  /** The time of a `checkReply` has come. */
  | { readonly kind: 'checkReply' }
  | { readonly kind: 'renewed'; readonly atMs: number }
  | { readonly kind: 'credential'; readonly token: string }
  | { readonly kind: 'supervise'; readonly run: SupervisedRunSpec }
  | { readonly kind: 'report'; readonly message: RunMessage }
  /** The worker exits. */
  | { readonly kind: 'close' }

/** What a worker reports about a Run. */
export type RunMessage = Extract<SupervisorMessage, { kind: 'started' | 'ended' | 'interrupted' | 'saved' | 'done' | 'abandoned' }>

export type SessionAction =
  | { readonly kind: 'send'; readonly message: SupervisorMessage }
  /** Find or start a supervisor; then `connected` or `connectFailed`. */
  | { readonly kind: 'connect' }
  /** End the connection after what was sent; its end is no event. */
  | { readonly kind: 'closeConnection' }
  /** Then `checkReply`. */
  | { readonly kind: 'checkReply'; readonly inMs: number }
  | { readonly kind: 'ready'; readonly pid: number }
  | { readonly kind: 'runReply'; readonly reply: Extract<SupervisorReply, { uid: string }> }
  /** No supervisor can be kept running, so no engine may run (invariant 2). */
  | { readonly kind: 'lost' }

type SessionRun = {
  readonly run: SupervisedRunSpec
  readonly groups: Set<number>
  isInterrupted: boolean
  savedDigest: string | undefined
  /** Kept until a supervisor has cleaned it up: the next one continues. */
  isAbandoned: boolean
}

/**
 * The worker's side of the supervisor's protocol: events go in, actions come out. It keeps what the next supervisor must know, because a
 * supervisor can be killed or paused too. Reads no clock and touches no process, file or socket.
 */
export class SupervisorSession {
  readonly #hello: { readonly worker: WorkerIdentity; readonly times: FenceTimings; readonly runsDir: string }
  readonly #runs = new Map<string, SessionRun>()
  #renewedAtMs: number
  #pid: number | undefined
  #connectedAtMs: number | undefined
  #hasConnected = false
  #isClosed = false
  #earlyDisconnects = 0
  /** When the oldest renewal without a reply was sent. */
  #unansweredSinceMs: number | undefined

  constructor(hello: {
    readonly worker: WorkerIdentity
    readonly times: FenceTimings
    readonly runsDir: string
    readonly renewedAtMs: number
  }) {
    const { renewedAtMs, ...identity } = hello
    this.#hello = identity
    this.#renewedAtMs = renewedAtMs
  }

  /** Process id of the current supervisor; undefined while disconnected. */
  get pid(): number | undefined {
    return this.#pid
  }

  step(event: SessionEvent, nowMs: number): SessionAction[] {
    switch (event.kind) {
      case 'connected':
        return this.#onConnected(nowMs)
      case 'connectFailed':
        // Without any supervisor yet, no engine runs: the first Run gets the error.
        return this.#isClosed || !this.#hasConnected ? [] : [{ kind: 'lost' }]
      case 'disconnected': {
        const isEarly = this.#connectedAtMs !== undefined && nowMs - this.#connectedAtMs < earlyDisconnectMs
        return this.#reconnect(isEarly ? this.#earlyDisconnects + 1 : 1)
      }
      case 'reply':
        return this.#onReply(event.reply)
      case 'checkReply':
        return this.#isUnresponsive(nowMs) ? this.#leaveUnresponsive() : []
      case 'renewed':
        return this.#renew(event.atMs, nowMs)
      case 'credential':
        for (const { run } of this.#runs.values()) if (run.salvage) run.salvage.token = event.token
        return this.#send({ kind: 'credential', token: event.token })
      case 'supervise':
        this.#runs.set(event.run.uid, {
          run: event.run,
          groups: new Set(),
          isInterrupted: false,
          savedDigest: undefined,
          isAbandoned: false,
        })
        return this.#send({ kind: 'run', run: event.run })
      case 'report':
        this.#record(event.message)
        return this.#send(event.message)
      case 'close': {
        const sent = this.#send({ kind: 'disconnect' })
        this.#isClosed = true
        return [...sent, { kind: 'closeConnection' }]
      }
    }
  }

  #onConnected(nowMs: number): SessionAction[] {
    if (this.#isClosed) return [{ kind: 'closeConnection' }]
    this.#connectedAtMs = nowMs
    this.#hasConnected = true
    return [
      ...this.#send({ kind: 'hello', ...this.#hello, renewedAtMs: this.#renewedAtMs }),
      ...[...this.#runs.values()].flatMap(run => this.#resend(run)),
    ]
  }

  /** Sends the whole state of a Run, to a new supervisor. */
  #resend({ run, groups, isInterrupted, savedDigest, isAbandoned }: SessionRun): SessionAction[] {
    const { uid } = run
    return [
      ...this.#send({ kind: 'run', run }),
      ...[...groups].flatMap(processGroupId => this.#send({ kind: 'started', uid, processGroupId })),
      ...(isInterrupted ? this.#send({ kind: 'interrupted', uid }) : []),
      ...(savedDigest !== undefined ? this.#send({ kind: 'saved', uid, digest: savedDigest }) : []),
      ...(isAbandoned ? this.#send({ kind: 'abandoned', uid }) : []),
    ]
  }

  #onReply(reply: SupervisorReply): SessionAction[] {
    this.#unansweredSinceMs = undefined
    switch (reply.kind) {
      case 'ready':
        this.#pid = reply.pid
        return [{ kind: 'ready', pid: reply.pid }]
      case 'armed':
        return [{ kind: 'runReply', reply }]
      case 'interrupted': {
        const state = this.#runs.get(reply.uid)
        if (state) state.isInterrupted = true
        return [{ kind: 'runReply', reply }]
      }
      case 'finished':
        this.#runs.delete(reply.uid)
        return [{ kind: 'runReply', reply }]
      default:
        return []
    }
  }

  #renew(atMs: number, nowMs: number): SessionAction[] {
    this.#renewedAtMs = Math.max(this.#renewedAtMs, atMs)
    if (this.#connectedAtMs === undefined) return []
    this.#unansweredSinceMs ??= nowMs
    const renewed = this.#send({ kind: 'renewed', worker: this.#hello.worker, atMs: this.#renewedAtMs })
    return this.#isUnresponsive(nowMs) ? [...renewed, { kind: 'checkReply', inMs: catchUpMs }] : renewed
  }

  #isUnresponsive(nowMs: number): boolean {
    return this.#unansweredSinceMs !== undefined && nowMs - this.#unansweredSinceMs > unresponsiveMs
  }

  /** A paused supervisor enforces no deadline: another one is found or started. */
  #leaveUnresponsive(): SessionAction[] {
    // It reads this when it resumes, and must not treat this worker as exited.
    const sent = this.#send({ kind: 'disconnect' })
    return [...sent, { kind: 'closeConnection' }, ...this.#reconnect(1)]
  }

  #reconnect(earlyDisconnects: number): SessionAction[] {
    this.#connectedAtMs = undefined
    this.#unansweredSinceMs = undefined
    this.#pid = undefined
    if (this.#isClosed) return []
    this.#earlyDisconnects = earlyDisconnects
    return [{ kind: earlyDisconnects > maxEarlyDisconnects ? 'lost' : 'connect' }]
  }

  #record(message: RunMessage): void {
    const state = this.#runs.get(message.uid)
    if (message.kind === 'done') this.#runs.delete(message.uid)
    else if (!state) return
    else if (message.kind === 'started') state.groups.add(message.processGroupId)
    else if (message.kind === 'ended') state.groups.delete(message.processGroupId)
    else if (message.kind === 'interrupted') state.isInterrupted = true
    else if (message.kind === 'saved') state.savedDigest = message.digest
    else state.isAbandoned = true
  }

  #send(message: SupervisorMessage): SessionAction[] {
    return this.#connectedAtMs === undefined ? [] : [{ kind: 'send', message }]
  }
}
