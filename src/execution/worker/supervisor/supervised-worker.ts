import { createHash } from 'node:crypto'
import { constants, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cgroupOfRun, groupExists, killRunProcesses, readStartTime, signalGroup } from '../../workspace/process/index.ts'
import { removeTree } from '../../workspace/run-directory.ts'
import { decideFence, type FenceStep, type FenceTimings } from '../lease/decide-fence.ts'
import { bootMs } from './clock.ts'
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

/** The worker acts at its own times; the supervisor only when it did not: SIGINT twice would cost the engine its state. */
const slackMs = 100
/** Timers stand still while the machine sleeps, and the Lease does not: looked at the clock at least this often. */
const checkIntervalMs = 500
/** A supervisor that did not look for so long was stopped: it reads for `catchUpMs` what has come meanwhile before it judges anybody. */
const pausedMs = 4 * checkIntervalMs
const catchUpMs = 250
/** The store may be restarting: tried this long, then the directory is left for a person. */
const salvageTimeoutMs = 15 * 60_000

type RunState = {
  run: SupervisedRunSpec
  groups: Set<number>
  sent: FenceStep
  savedDigest: string | undefined
  reaper: Reaper | undefined
  /** Its worker is dead or has let go of it. */
  isTakenOver: boolean
}

/** A worker under supervisor, and its Runs. */
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
  /** Runs that were ended here and that the worker has not let go of. */
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
        // A worker that was stopped past its time and goes on: nothing of it may start any more.
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
    // As long as a keeper lives, nobody sweeps the directory away.
    const keepers = [
      [process.pid, readStartTime(process.pid) ?? ''],
      [this.worker.pid, this.worker.startTime],
    ]
    for (const [pid, startTime] of keepers) writeFileSync(join(run.directory, `${ownerPrefix}${pid}`), `${startTime}`, { mode: 0o600 })
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
        // The disk is full, or the Run has just ended and its directory is gone: the record keeps the old one, and nothing ends for it.
      }
    }
  }

  #forget(supervised: RunState): void {
    supervised.reaper?.cancel()
    this.#runs.delete(supervised.run.uid)
  }

  /**
   * Looks at the deadlines when everything that has come is read. A supervisor that was stopped, or had no CPU time, finds old messages
   * first, and behind them the renewals, or that its worker has another supervisor: none of them alone says how things stand.
   */
  #scheduleCheck(): void {
    if (this.#isCheckScheduled) return
    this.#isCheckScheduled = true
    const look = (): void => {
      this.#isCheckScheduled = false
      this.#checkedAtMs = bootMs()
      this.#checkDeadlines()
    }
    const wasStopped = this.#runs.size > 0 && bootMs() - this.#checkedAtMs > pausedMs
    if (wasStopped) setTimeout(look, catchUpMs)
    else setImmediate(look)
  }

  #checkDeadlines(): void {
    clearTimeout(this.#timer)
    let waitMs = Number.POSITIVE_INFINITY
    for (const supervised of this.#runs.values()) waitMs = Math.min(waitMs, this.#checkDeadline(supervised))
    if (this.#runs.size > 0) this.#timer = setTimeout(() => this.#scheduleCheck(), Math.min(waitMs, checkIntervalMs))
  }

  /** Says in how many milliseconds to look again. */
  #checkDeadline(supervised: RunState): number {
    const { interruptMs, terminateMs, killMs } = this.#times
    const later = { interruptMs: interruptMs + slackMs, terminateMs: terminateMs + slackMs, killMs }
    // A Run that outlives its own time by far is treated as one whose worker is gone: its event loop stands still, or worse.
    const overdueMs = supervised.run.endsByMs === undefined ? Number.NEGATIVE_INFINITY : bootMs() - supervised.run.endsByMs + interruptMs
    const { send, recheckInMs } = decideFence(Math.max(bootMs() - this.#renewedAtMs, overdueMs), supervised.sent, later)
    if (send !== 'none') {
      supervised.sent = send
      this.#signal(supervised, send)
    }
    if (supervised.sent === 'SIGKILL') {
      // While the Lease still stands nobody takes over: what the engine wrote last is saved as the newest state, not as an orphan.
      this.#finish(supervised)
      this.#suspects.add(supervised.run.uid)
      this.#killedAtMs ??= bootMs()
      this.#endStoppedWorker()
    }
    return recheckInMs
  }

  /** A worker that lives lets go of its Run after SIGKILL. One that does not is stopped, and must not wake up and go on. */
  #endStoppedWorker(): void {
    clearTimeout(this.#suspectTimer)
    if (this.#hasWorkerExited || this.#suspects.size === 0 || this.#killedAtMs === undefined) return
    if (bootMs() - this.#killedAtMs >= this.#times.killMs && readStartTime(this.worker.pid) === this.worker.startTime) {
      process.kill(this.worker.pid, 'SIGKILL')
    }
    this.#suspectTimer = setTimeout(() => setImmediate(() => this.#endStoppedWorker()), checkIntervalMs)
  }

  #signal(supervised: RunState, signal: NodeJS.Signals): void {
    for (const group of supervised.groups) signalGroup(group, signal)
    // Strays, and what a worker was stopped over before it could say that it had started it.
    if (signal === 'SIGKILL') void killRunProcesses(supervised.run.uid)
  }

  /** The worker is dead: what it had is ended, saved and removed. Resolves when that is done. */
  async onWorkerExit(): Promise<void> {
    this.#hasWorkerExited = true
    for (const supervised of this.#runs.values()) this.#finish(supervised)
    await this.settled()
  }

  /** The worker needs no supervisor any more, or has another: what was left to this one is finished, the rest is let go of. */
  async release(): Promise<void> {
    clearTimeout(this.#timer)
    this.#suspects.clear()
    for (const supervised of this.#runs.values()) if (!supervised.isTakenOver) this.#forget(supervised)
    this.#scheduleCheck()
    await this.settled()
  }

  /** Resolves when what was left to the supervisor is cleaned up. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#finishing)
  }

  #finish(supervised: RunState): void {
    if (supervised.isTakenOver) return
    supervised.isTakenOver = true
    const finishing = this.#cleanUp(supervised).finally(() => this.#finishing.delete(finishing))
    this.#finishing.add(finishing)
    // What cannot be cleaned up now is found by the next sweep.
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
    const why = run.salvage && (await salvageUnlessSaved(run.salvage, supervised.savedDigest, salvageTimeoutMs))
    if (why === undefined) await removeTree(run.directory)
    else keepForRecovery(run.directory, `${ownerPrefix}${process.pid}`, why)
    this.#reply({ kind: 'finished', uid: run.uid })
  }
}

/** In one step: a supervisor that is killed leaves the old one or the new one. */
function writeRecord(run: SupervisedRunSpec): void {
  const path = join(run.directory, recordName)
  writeFileSync(`${path}.new`, JSON.stringify(run), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** A new name for a file that is there: also a full disk, which may be why nothing could be saved, takes it; `why` only if it can. */
export function keepForRecovery(directory: string, fileThere: string, why: string): void {
  const mark = join(directory, unsavedMarkerName)
  renameSync(join(directory, fileThere), mark)
  try {
    writeFileSync(mark, `${why}\n`)
  } catch {
    // The mark alone says enough.
  }
}

/** As in recover-state.ts. */
const plainFile = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Undefined when there is nothing left to save: no state, the store has it, or keeps it aside (invariant 3); else why it could not be. */
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
    // No file: the engine wrote no state. Anything else leaves it where it is, for a person.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : (error as Error).message
  }
}
