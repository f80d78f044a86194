import { createHash } from 'node:crypto'
import { constants, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cgroupOfRun, groupExists, killRunProcesses, readStartTime, signalGroup } from '../../workspace/process/index.ts'
import { removeTree } from '../../workspace/run-directory.ts'
import type { FenceStep, FenceTimings } from '../lease/decide-fence.ts'
import { bootMs } from './clock.ts'
import { decideDeadline } from './decide-deadline.ts'
import { Reaper } from './reaper.ts'
import {
  fifoName,
  ownerPrefix,
  recordName,
  type SalvageTarget,
  type SupervisedRunSpec,
  type SupervisorMessage,
  type SupervisorReply,
  unsavedMarkerName,
  type WorkerIdentity,
} from './supervisor-protocol.ts'

/** Timers stop while the machine is suspended and the Lease does not: the clock is read at least this often. */
const checkIntervalMs = 500
/** A supervisor that checked nothing for this long was paused: it first reads pending messages for `catchUpMs`. */
const pausedMs = 4 * checkIntervalMs
const catchUpMs = 250
/** The store may be restarting: the upload is retried this long, then the directory is kept for a user. */
const salvageTimeoutMs = 15 * 60_000

type RunState = {
  run: SupervisedRunSpec
  groups: Set<number>
  sent: FenceStep
  savedDigest: string | undefined
  reaper: Reaper | undefined
  /** The supervisor cleans up: the worker exited or abandoned the Run. */
  isTakenOver: boolean
}

/** Enforces the deadlines of one worker's Runs, and cleans up after a worker that exited. */
export class SupervisedWorker {
  readonly worker: WorkerIdentity
  readonly #times: FenceTimings
  readonly #reply: (answer: SupervisorReply) => void
  readonly #runs = new Map<string, RunState>()
  #renewedAtMs = bootMs()
  #timer: NodeJS.Timeout | undefined
  #isCheckScheduled = false
  #checkedAtMs = bootMs()
  #killedAtMs: number | undefined
  /** Runs that the supervisor has killed and the worker has not released. */
  readonly #suspects = new Set<string>()
  #suspectTimer: NodeJS.Timeout | undefined
  #hasWorkerExited = false
  readonly #finishing = new Set<Promise<void>>()

  constructor(worker: WorkerIdentity, times: FenceTimings, answer: (answer: SupervisorReply) => void) {
    this.worker = worker
    this.#times = times
    this.#reply = answer
  }

  renewed(atMs: number): void {
    this.#renewedAtMs = Math.max(this.#renewedAtMs, atMs)
  }

  handle(message: Exclude<SupervisorMessage, { kind: 'hello' | 'renewed' | 'goodbye' }>): void {
    if (message.kind === 'run') this.#supervise(message.run)
    else if (message.kind === 'credential') this.#renewCredential(message.token)
    else {
      if (message.kind === 'done' || message.kind === 'abandoned') this.#suspects.delete(message.uid)
      if (this.#suspects.size === 0) this.#killedAtMs = undefined
      const supervised = this.#runs.get(message.uid)
      if (supervised) this.#handleRunMessage(supervised, message)
    }
    this.#scheduleCheck()
  }

  #handleRunMessage(supervised: RunState, message: Extract<SupervisorMessage, { uid: string }>): void {
    switch (message.kind) {
      case 'started':
        supervised.groups.add(message.processGroupId)
        // A worker that was paused past its deadline and resumed: it may start nothing any more.
        if (supervised.sent === 'SIGKILL') signalGroup(message.processGroupId, 'SIGKILL')
        return
      case 'ended':
        supervised.groups.delete(message.processGroupId)
        return
      case 'interrupted':
        if (supervised.sent === 'none') supervised.sent = 'SIGINT'
        return
      case 'saved':
        supervised.savedDigest = message.digest
        return
      case 'done':
        this.#forget(supervised)
        return
      case 'abandoned':
        this.#finish(supervised)
        return
    }
  }

  #supervise(run: SupervisedRunSpec): void {
    // While a process named here is alive, no sweep removes the directory.
    const owners = [
      [process.pid, readStartTime(process.pid) ?? ''],
      [this.worker.pid, this.worker.startTime],
    ]
    for (const [pid, startTime] of owners) writeFileSync(join(run.directory, `${ownerPrefix}${pid}`), `${startTime}`, { mode: 0o600 })
    writeRecord(run)
    const supervised: RunState = { run, groups: new Set(), sent: 'none', savedDigest: undefined, reaper: undefined, isTakenOver: false }
    if (this.#runs.size === 0) this.#checkedAtMs = bootMs()
    this.#runs.set(run.uid, supervised)
    const fifo = join(run.directory, fifoName)
    supervised.reaper = new Reaper({
      fifo,
      runUid: run.uid,
      cgroup: cgroupOfRun(run.uid)?.path,
      onArmed: () => this.#reply({ kind: 'armed', uid: run.uid, fifo }),
    })
  }

  #renewCredential(token: string): void {
    for (const { run } of this.#runs.values()) {
      if (!run.salvage) continue
      run.salvage.token = token
      try {
        writeRecord(run)
      } catch {
        // The disk is full, or the Run has just ended and its directory was removed. The record keeps the old credential.
      }
    }
  }

  #forget(supervised: RunState): void {
    supervised.reaper?.cancel()
    this.#runs.delete(supervised.run.uid)
  }

  /**
   * Checks the deadlines after all pending messages are read. A supervisor that was paused, or had no CPU time, reads old messages first;
   * the renewals, or the message that its worker has another supervisor, come after them.
   */
  #scheduleCheck(): void {
    if (this.#isCheckScheduled) return
    this.#isCheckScheduled = true
    const check = (): void => {
      this.#isCheckScheduled = false
      this.#checkedAtMs = bootMs()
      this.#checkDeadlines()
    }
    const wasPaused = this.#runs.size > 0 && bootMs() - this.#checkedAtMs > pausedMs
    if (wasPaused) setTimeout(check, catchUpMs)
    else setImmediate(check)
  }

  #checkDeadlines(): void {
    clearTimeout(this.#timer)
    let waitMs = Number.POSITIVE_INFINITY
    for (const supervised of this.#runs.values()) waitMs = Math.min(waitMs, this.#checkDeadline(supervised))
    if (this.#runs.size > 0) this.#timer = setTimeout(() => this.#scheduleCheck(), Math.min(waitMs, checkIntervalMs))
  }

  /** Returns in how many milliseconds to check again. */
  #checkDeadline(supervised: RunState): number {
    const { endsByMs } = supervised.run
    const { send, recheckInMs } = decideDeadline({
      ...{ nowMs: bootMs(), renewedAtMs: this.#renewedAtMs, endsByMs },
      sent: supervised.sent,
      times: this.#times,
    })
    if (send !== 'none') {
      supervised.sent = send
      this.#signal(supervised, send)
    }
    if (supervised.sent === 'SIGKILL') {
      // While the Lease is valid no worker takes over: the last state is saved as the newest, not as an orphan.
      this.#finish(supervised)
      this.#suspects.add(supervised.run.uid)
      this.#killedAtMs ??= bootMs()
      this.#killPausedWorker()
    }
    return recheckInMs
  }

  /** A running worker releases its Run after SIGKILL. One that does not is paused, and must not resume and continue. */
  #killPausedWorker(): void {
    clearTimeout(this.#suspectTimer)
    if (this.#hasWorkerExited || this.#suspects.size === 0 || this.#killedAtMs === undefined) return
    if (bootMs() - this.#killedAtMs >= this.#times.killMs && readStartTime(this.worker.pid) === this.worker.startTime) {
      process.kill(this.worker.pid, 'SIGKILL')
    }
    this.#suspectTimer = setTimeout(() => setImmediate(() => this.#killPausedWorker()), checkIntervalMs)
  }

  #signal(supervised: RunState, signal: NodeJS.Signals): void {
    for (const group of supervised.groups) signalGroup(group, signal)
    // Also processes that left their group, and those that a worker started without having reported them.
    if (signal === 'SIGKILL') void killRunProcesses(supervised.run.uid)
  }

  /** The worker exited: its engines are stopped, their state saved, their directories removed. Resolves when that is done. */
  async onWorkerExit(): Promise<void> {
    this.#hasWorkerExited = true
    for (const supervised of this.#runs.values()) this.#finish(supervised)
    await this.settled()
  }

  /** The worker has disconnected, or has another supervisor: abandoned Runs are finished, the others released. */
  async release(): Promise<void> {
    clearTimeout(this.#timer)
    this.#suspects.clear()
    for (const supervised of this.#runs.values()) if (!supervised.isTakenOver) this.#forget(supervised)
    this.#scheduleCheck()
    await this.settled()
  }

  /** Resolves when every abandoned Run is cleaned up. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#finishing)
  }

  #finish(supervised: RunState): void {
    if (supervised.isTakenOver) return
    supervised.isTakenOver = true
    const finishing = this.#cleanUp(supervised).finally(() => this.#finishing.delete(finishing))
    this.#finishing.add(finishing)
    // A later sweep retries what failed.
    finishing.catch(() => {})
  }

  async #cleanUp(supervised: RunState): Promise<void> {
    const { run } = supervised
    if (supervised.sent === 'none') {
      supervised.sent = 'SIGINT'
      this.#signal(supervised, 'SIGINT')
    }
    this.#scheduleCheck()
    while ([...supervised.groups].some(group => groupExists(group))) await new Promise(resolve => setTimeout(resolve, 20))
    await killRunProcesses(run.uid)
    await cgroupOfRun(run.uid)?.remove()
    this.#forget(supervised)
    const failure = run.salvage && (await salvageUnlessSaved(run.salvage, supervised.savedDigest, salvageTimeoutMs))
    if (failure === undefined) await removeTree(run.directory)
    else keepForRecovery(run.directory, `${ownerPrefix}${process.pid}`, failure)
    this.#reply({ kind: 'finished', uid: run.uid })
  }
}

/** Written atomically: a supervisor that is killed leaves the old record or the new one. */
function writeRecord(run: SupervisedRunSpec): void {
  const path = join(run.directory, recordName)
  writeFileSync(`${path}.new`, JSON.stringify(run), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Marks a directory as unsaved by renaming an existing file, which succeeds even on a full disk; `reason` is written if possible. */
export function keepForRecovery(directory: string, existingFile: string, reason: string): void {
  const mark = join(directory, unsavedMarkerName)
  renameSync(join(directory, existingFile), mark)
  try {
    writeFileSync(mark, `${reason}\n`)
  } catch {
    // The marker alone is enough.
  }
}

/** As in recover-state.ts. */
const plainFile = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Returns undefined if nothing remains to be saved: no state, or the store has it, at least as an orphan (invariant 3). Otherwise the error. */
export async function salvageUnlessSaved(
  { path, ...target }: SalvageTarget,
  savedDigest: string | undefined,
  deadlineMs: number,
): Promise<string | undefined> {
  try {
    if (
      createHash('sha256')
        .update(readFileSync(path, { flag: plainFile }))
        .digest('hex') === savedDigest
    )
      return undefined
    const { recoverState } = await import('../../../stores/state/recover-state.ts')
    await recoverState({ path, ...target, deadlineMs })
    return undefined
  } catch (error) {
    // No file: the engine wrote no state. After any other error the file stays, for a user.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : (error as Error).message
  }
}
