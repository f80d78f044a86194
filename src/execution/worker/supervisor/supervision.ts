import type { InterruptTarget } from '../../workspace/process/index.ts'
import type { FenceStep, FenceTimings } from '../lease/decide-fence.ts'
import { decideDeadline } from './decide-deadline.ts'
import type { SupervisedRunSpec, SupervisorMessage, SupervisorReply } from './supervisor-protocol.ts'

/** Timers stop while the machine is suspended and the Lease does not: the clock is read at least this often. */
const checkIntervalMs = 500
/** A supervisor that checked nothing for this long was paused: it first reads pending messages for `catchUpMs`. */
const pausedMs = 4 * checkIntervalMs
const catchUpMs = 250
/** Runs of one worker, and groups of one Run, that are supervised (invariant 10). A worker has at most 64 slots, and a Run one or two groups. */
const maxRuns = 256
const maxGroups = 256

/** What happens to one worker's Runs. */
export type SupervisionEvent =
  | { readonly kind: 'message'; readonly message: Exclude<SupervisorMessage, { kind: 'hello' | 'renewed' | 'disconnect' }> }
  /** From the worker, or from its heartbeat's thread over a connection of its own. */
  | { readonly kind: 'renewed'; readonly atMs: number }
  /** The Run's reaper holds its pipe open. */
  | { readonly kind: 'armed'; readonly uid: string; readonly fifo: string }
  /** The time of a `wake` has come. */
  | { readonly kind: 'woken' }
  /** The messages that were pending at a `check` have been handled. */
  | { readonly kind: 'check' }
  /** Every process of a Run that is cleaned up has exited. */
  | { readonly kind: 'exited'; readonly uid: string }
  /** Its state is saved and its directory removed, as far as possible. */
  | { readonly kind: 'cleanedUp'; readonly uid: string }
  /** The connection closed without a disconnect. */
  | { readonly kind: 'workerExited' }
  /** The worker has disconnected, or has another supervisor. */
  | { readonly kind: 'disconnect' }

export type SupervisionAction =
  /** Own the Run's directory, record the Run there, and start its reaper; then `armed`. */
  | { readonly kind: 'record'; readonly run: SupervisedRunSpec }
  | { readonly kind: 'updateRecord'; readonly run: SupervisedRunSpec }
  /** `send` SIGKILL also to processes that left their group, and to those that a worker started without having reported them. */
  | {
      readonly kind: 'signal'
      readonly uid: string
      readonly groups: readonly number[]
      readonly send: Exclude<FenceStep, 'none'>
      /** Whom SIGINT goes to. */
      readonly interrupt?: InterruptTarget | undefined
    }
  /** Wait until the groups have ended, kill every other process of the Run; then `exited`. */
  | { readonly kind: 'awaitExit'; readonly uid: string }
  /** Save the state unless the store has `savedDigest`, remove the directory; then `cleanedUp`. */
  | { readonly kind: 'cleanUp'; readonly run: SupervisedRunSpec; readonly savedDigest: string | undefined }
  /** Own the Run's directory no longer. */
  | { readonly kind: 'disown'; readonly run: SupervisedRunSpec }
  /** End the Run's reaper. */
  | { readonly kind: 'release'; readonly uid: string }
  /** Kill the worker's process, unless its id belongs to another process by now. */
  | { readonly kind: 'killWorker' }
  | { readonly kind: 'reply'; readonly reply: SupervisorReply }
  /** Handle pending messages, for this long; then `check`. */
  | { readonly kind: 'check'; readonly inMs: number }
  /** Then `woken`; replaces the time of an earlier `wake`. Infinity: never. */
  | { readonly kind: 'wake'; readonly inMs: number }

type RunState = {
  readonly run: SupervisedRunSpec
  readonly groups: Set<number>
  sent: FenceStep
  savedDigest: string | undefined
  /** The supervisor cleans up: the worker exited or abandoned the Run, or its deadline has passed. */
  isTakenOver: boolean
}

/**
 * Decides what the supervisor does for one worker: enforces the deadlines of its Runs (invariant 2), and cleans up after it. Events go in,
 * actions come out; it reads no clock and touches no process, file or socket.
 */
export class Supervision {
  readonly #times: FenceTimings
  readonly #runs = new Map<string, RunState>()
  /** Runs that the supervisor has killed and the worker has not released. */
  readonly #suspects = new Set<string>()
  #renewedAtMs: number
  #checkedAtMs: number
  #isCheckRequested = false
  #killedAtMs: number | undefined
  #hasWorkerExited = false

  /** `renewedAtMs`: before this time the worker's last successful renewal was sent. A new supervisor knows of no other. */
  constructor(options: { readonly times: FenceTimings; readonly renewedAtMs: number; readonly nowMs: number }) {
    this.#times = options.times
    // A later time than now would postpone every deadline.
    this.#renewedAtMs = Math.min(options.renewedAtMs, options.nowMs)
    this.#checkedAtMs = options.nowMs
  }

  /** The process groups of a Run that may still run. */
  groupsOf(uid: string): readonly number[] {
    return [...(this.#runs.get(uid)?.groups ?? [])]
  }

  step(event: SupervisionEvent, nowMs: number): SupervisionAction[] {
    switch (event.kind) {
      case 'message':
        return [...this.#handle(event.message, nowMs), ...this.#requestCheck(nowMs)]
      case 'renewed':
        this.#renewedAtMs = Math.max(this.#renewedAtMs, Math.min(event.atMs, nowMs))
        return []
      case 'armed':
        return [{ kind: 'reply', reply: { kind: 'armed', uid: event.uid, fifo: event.fifo } }]
      case 'woken':
        return this.#requestCheck(nowMs)
      case 'check':
        this.#isCheckRequested = false
        this.#checkedAtMs = nowMs
        return this.#check(nowMs)
      case 'exited': {
        const state = this.#runs.get(event.uid)
        return state ? [...this.#forget(state), { kind: 'cleanUp', run: state.run, savedDigest: state.savedDigest }] : []
      }
      case 'cleanedUp':
        return [{ kind: 'reply', reply: { kind: 'finished', uid: event.uid } }]
      case 'workerExited':
        this.#hasWorkerExited = true
        this.#suspects.clear()
        return [...[...this.#runs.values()].flatMap(state => this.#takeOver(state)), ...this.#requestCheck(nowMs)]
      case 'disconnect':
        this.#suspects.clear()
        return [...[...this.#runs.values()].flatMap(state => this.#leave(state)), ...this.#requestCheck(nowMs)]
    }
  }

  #handle(message: Extract<SupervisionEvent, { kind: 'message' }>['message'], nowMs: number): SupervisionAction[] {
    if (message.kind === 'run') return this.#supervise(message.run, nowMs)
    if (message.kind === 'credential') return this.#renewCredential(message.token)
    const { uid } = message
    if (message.kind === 'done' || message.kind === 'abandoned') this.#suspects.delete(uid)
    if (this.#suspects.size === 0) this.#killedAtMs = undefined
    const state = this.#runs.get(uid)
    // A worker that was paused past its deadline and resumed: it may start nothing any more.
    if (message.kind === 'started' && (this.#suspects.has(uid) || state?.sent === 'SIGKILL')) {
      if (state && state.groups.size < maxGroups) state.groups.add(message.processGroupId)
      return [{ kind: 'signal', uid, groups: [message.processGroupId], send: 'SIGKILL' }]
    }
    if (!state) return []
    switch (message.kind) {
      case 'started':
        if (state.groups.size < maxGroups) state.groups.add(message.processGroupId)
        return []
      case 'ended':
        state.groups.delete(message.processGroupId)
        return []
      case 'interrupted':
        if (state.sent === 'none') state.sent = 'SIGINT'
        return []
      case 'saved':
        state.savedDigest = message.digest
        return []
      case 'done':
        return this.#forget(state)
      case 'abandoned':
        return this.#takeOver(state)
      default:
        // A kind that this version does not know.
        return []
    }
  }

  #supervise(run: SupervisedRunSpec, nowMs: number): SupervisionAction[] {
    // Not replaced: the groups of the first one would run without a deadline.
    if (this.#runs.has(run.uid)) throw new Error(`Run ${run.uid} is supervised already`)
    if (this.#runs.size >= maxRuns) throw new Error(`the limit of ${maxRuns} Runs is reached`)
    if (this.#runs.size === 0) this.#checkedAtMs = nowMs
    this.#runs.set(run.uid, { run, groups: new Set(), sent: 'none', savedDigest: undefined, isTakenOver: false })
    return [{ kind: 'record', run }]
  }

  #renewCredential(token: string): SupervisionAction[] {
    return [...this.#runs.values()].flatMap(({ run }) => {
      if (!run.salvage) return []
      run.salvage.token = token
      return [{ kind: 'updateRecord', run } as const]
    })
  }

  #forget({ run: { uid } }: RunState): SupervisionAction[] {
    this.#runs.delete(uid)
    return [{ kind: 'release', uid }]
  }

  /** Another supervisor may have it: this one must not protect its directory from a sweep. */
  #leave(state: RunState): SupervisionAction[] {
    return state.isTakenOver ? [] : [...this.#forget(state), { kind: 'disown', run: state.run }]
  }

  #takeOver(state: RunState): SupervisionAction[] {
    if (state.isTakenOver) return []
    state.isTakenOver = true
    const { uid } = state.run
    return [...(state.sent === 'none' ? this.#signal(state, 'SIGINT') : []), { kind: 'awaitExit', uid }]
  }

  #signal(state: RunState, send: Exclude<FenceStep, 'none'>): SupervisionAction[] {
    state.sent = send
    const { uid } = state.run
    const signal: SupervisionAction = { kind: 'signal', uid, groups: [...state.groups], send, interrupt: state.run.interrupt }
    return send === 'SIGINT' && !this.#hasWorkerExited ? [signal, { kind: 'reply', reply: { kind: 'interrupted', uid } }] : [signal]
  }

  /**
   * Checks the deadlines after all pending messages are read. A supervisor that was paused, or had no CPU time, reads old messages first;
   * the renewals, or the message that its worker has another supervisor, come after them.
   */
  #requestCheck(nowMs: number): SupervisionAction[] {
    if (this.#isCheckRequested) return []
    this.#isCheckRequested = true
    const wasPaused = this.#isWatching && nowMs - this.#checkedAtMs > pausedMs
    return [{ kind: 'check', inMs: wasPaused ? catchUpMs : 0 }]
  }

  get #isWatching(): boolean {
    return this.#runs.size > 0 || this.#suspects.size > 0
  }

  #check(nowMs: number): SupervisionAction[] {
    const actions: SupervisionAction[] = []
    let wakeInMs = Number.POSITIVE_INFINITY
    for (const state of this.#runs.values()) {
      const { send, recheckInMs } = decideDeadline({
        ...{ nowMs, renewedAtMs: this.#renewedAtMs, endsByMs: state.run.endsByMs },
        sent: state.sent,
        times: this.#times,
      })
      if (send !== 'none') actions.push(...this.#signal(state, send))
      // While the Lease is valid no worker takes over: the last state is saved as the newest, not as an orphan.
      if (state.sent === 'SIGKILL') actions.push(...this.#takeOver(state), ...this.#suspect(state, nowMs))
      wakeInMs = Math.min(wakeInMs, recheckInMs)
    }
    actions.push(...this.#killPausedWorker(nowMs))
    if (this.#isWatching) actions.push({ kind: 'wake', inMs: Math.min(wakeInMs, checkIntervalMs) })
    return actions
  }

  #suspect({ run: { uid } }: RunState, nowMs: number): SupervisionAction[] {
    if (this.#hasWorkerExited) return []
    this.#suspects.add(uid)
    this.#killedAtMs ??= nowMs
    return []
  }

  /** A running worker releases its Run after SIGKILL. One that does not is paused, and must not resume and continue. */
  #killPausedWorker(nowMs: number): SupervisionAction[] {
    if (this.#suspects.size === 0 || this.#killedAtMs === undefined) return []
    return nowMs - this.#killedAtMs >= this.#times.killMs ? [{ kind: 'killWorker' }] : []
  }
}
