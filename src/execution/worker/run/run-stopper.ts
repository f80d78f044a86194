import { type InterruptTarget, killGroup, signalGroup } from '../../workspace/index.ts'
import type { FenceStep } from '../lease/decide-fence.ts'
import { decideStop } from './decide-stop.ts'
import { RunStoppedError, type StopCause } from './stop-cause.ts'

/** From SIGINT to SIGTERM, and from there to SIGKILL, of an engine whose Run another worker may already have started again. */
export const escalationMs = 1_500

export type RunStopperOptions = {
  /** Called before the engine is interrupted, so that the supervisor does not interrupt it a second time. */
  onInterrupt(): void
  /** False: the supervisor interrupts the engine, because this worker is late. Default: true. */
  mayInterrupt?(): boolean
  /** Whom SIGINT goes to. Default: Group. */
  interruptTarget?: InterruptTarget
  /** For tests. Default: a signal to the process group. */
  signalGroup?(group: number, signal: NodeJS.Signals, interruptTarget: InterruptTarget | undefined): void
  /** For tests. Default: timers that do not keep the process alive. */
  after?(ms: number, run: () => void): void
}

/** Stops what a Run started: keeps the cause, the process groups that run, and the two signals that its phases observe. */
export class RunStopper {
  readonly #options: RunStopperOptions
  readonly #interrupt = new AbortController()
  readonly #writes = new AbortController()
  readonly #groups = new Set<number>()
  #cause: StopCause | undefined
  #isInterruptOmitted = false

  constructor(options: RunStopperOptions) {
    this.#options = options
  }

  /** Why the Run is stopped; undefined while it is not. */
  get cause(): StopCause | undefined {
    return this.#cause
  }

  /** Aborted when the engine has to stop: the process runner then sends SIGINT. */
  get signal(): AbortSignal {
    return this.#interrupt.signal
  }

  /** Aborted when nothing may be written any more: no status, no state, no lock. */
  get writeSignal(): AbortSignal {
    return this.#writes.signal
  }

  /** Stops the engine; see {@link decideStop} for which cause is reported. */
  stop(cause: StopCause): void {
    const decision = decideStop(this.#cause, cause)
    this.#cause = decision.cause
    if (decision.interrupt) {
      this.#isInterruptOmitted = this.#options.mayInterrupt?.() === false
      if (!this.#isInterruptOmitted) this.#options.onInterrupt()
      this.#interrupt.abort(new RunStoppedError(cause))
    }
    if (!decision.forbidWrites || this.#writes.signal.aborted) return
    // Invariant 1: another Run of the Stack may start at any moment.
    this.#writes.abort(new RunStoppedError(cause))
    const { after = (ms, run) => void setTimeout(run, ms).unref() } = this.#options
    after(escalationMs, () => this.signalAll('SIGTERM'))
    after(2 * escalationMs, () => this.signalAll('SIGKILL'))
  }

  /** Invariant 2: what the fence requires of a Run whose Lease is not renewed. */
  fence(step: FenceStep): void {
    // The abort makes the runner send SIGINT. Another SIGINT from here would make terraform drop what it has not saved.
    this.stop({ kind: 'LeaseLost' })
    if (step === 'SIGTERM' || step === 'SIGKILL') this.signalAll(step)
    if (step === 'SIGKILL') this.#writes.abort(new RunStoppedError({ kind: 'LeaseLost' }))
  }

  /** Keeps the cause of an error that ended the Run, where no other cause is known. */
  recordCause(cause: StopCause): void {
    this.#cause ??= cause
  }

  addGroup(group: number): void {
    this.#groups.add(group)
  }

  removeGroup(group: number): void {
    this.#groups.delete(group)
  }

  signalAll(signal: NodeJS.Signals): void {
    for (const group of this.#groups) this.#send(group, signal)
  }

  /** What the process runner does with a group when {@link signal} is aborted. */
  interruptGroup(group: number): void {
    if (!this.#isInterruptOmitted) this.#send(group, 'SIGINT')
  }

  #send(group: number, signal: NodeJS.Signals): void {
    const { signalGroup: send = signalGroup, interruptTarget } = this.#options
    send(group, signal, interruptTarget)
  }

  /** Kills every process group that still runs; resolves when they have exited. */
  async killAll(): Promise<void> {
    await Promise.all([...this.#groups].map(group => killGroup(group)))
  }
}
