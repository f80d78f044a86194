import { createHash } from 'node:crypto'
import { lstatSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cgroupOfRun, groupExists, killRunProcesses, readStartTime, signalGroup } from '../../workspace/process/index.ts'
import { removeTree } from '../../workspace/run-directory.ts'
import type { FenceTimings } from '../lease/decide-fence.ts'
import { bootMs } from './clock.ts'
import { isForeignGroup } from './is-foreign-group.ts'
import { Reaper } from './reaper.ts'
import type { SupervisedWorkerPart } from './supervised-workers.ts'
import { Supervision, type SupervisionAction, type SupervisionEvent } from './supervision.ts'
import {
  fifoName,
  ownerPrefix,
  recordName,
  type SupervisedRunSpec,
  type SupervisorReply,
  unsavedMarkerName,
  type WorkerIdentity,
} from './supervisor-protocol.ts'

/** The store may be restarting: the upload is retried this long, then the directory is kept for a user. */
const salvageTimeoutMs = 15 * 60_000
/** How often to check whether the processes of a Run have exited. */
const exitCheckMs = 20

export type SupervisedWorkerOptions = {
  readonly worker: WorkerIdentity
  readonly times: FenceTimings
  /** Contains the directories of its Runs, and nothing else is written or removed. */
  readonly runsDir: string
  readonly renewedAtMs: number
  answer(reply: SupervisorReply): void
}

/** Executes what {@link Supervision} decides for one worker: signals, files of Runs, reapers, saved states. */
export class SupervisedWorker implements SupervisedWorkerPart {
  readonly #worker: WorkerIdentity
  readonly #runsDir: string
  readonly #answer: (reply: SupervisorReply) => void
  readonly #supervision: Supervision
  readonly #reapers = new Map<string, Reaper>()
  readonly #cleaning = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined

  constructor({ worker, runsDir, answer, ...state }: SupervisedWorkerOptions) {
    this.#worker = worker
    this.#runsDir = runsDir
    this.#answer = answer
    this.#supervision = new Supervision({ ...state, nowMs: bootMs() })
  }

  /** @throws {Error} for a Run that cannot be supervised. Events of timers, and of a connection that has closed, never throw. */
  handle(event: SupervisionEvent): void {
    if (event.kind === 'message' && event.message.kind === 'run') this.#checkDirectory(event.message.run)
    if (event.kind === 'message' && event.message.kind === 'started') {
      const { uid, processGroupId } = event.message
      if (isForeignGroup(processGroupId, { uid, workerPid: this.#worker.pid })) return
    }
    for (const action of this.#supervision.step(event, bootMs())) this.#execute(action)
  }

  /** Resolves when every Run that this supervisor has taken over is cleaned up. */
  async settled(): Promise<void> {
    while (this.#cleaning.size > 0) await Promise.allSettled(this.#cleaning)
  }

  #execute(action: SupervisionAction): void {
    switch (action.kind) {
      case 'record':
        this.#record(action.run)
        return
      case 'updateRecord':
        try {
          writeRecord(action.run)
        } catch {
          // The disk is full, or the Run has just ended and its directory was removed. The record keeps the old credential.
        }
        return
      case 'signal':
        // What cannot be signalled belongs to another user.
        for (const group of action.groups) attempt(() => signalGroup(group, action.send, action.interrupt))
        if (action.send === 'SIGKILL') killRunProcesses(action.uid).catch(() => {})
        return
      case 'awaitExit':
        this.#track(this.#awaitExit(action.uid))
        return
      case 'cleanUp':
        this.#track(this.#cleanUp(action.run, action.savedDigest))
        return
      case 'disown':
        attempt(() => rmSync(join(action.run.directory, `${ownerPrefix}${process.pid}`), { force: true }))
        return
      case 'release':
        this.#reapers.get(action.uid)?.cancel()
        this.#reapers.delete(action.uid)
        return
      case 'killWorker':
        attempt(() => readStartTime(this.#worker.pid) === this.#worker.startTime && process.kill(this.#worker.pid, 'SIGKILL'))
        return
      case 'reply':
        this.#answer(action.reply)
        return
      case 'check': {
        const check = (): void => this.handle({ kind: 'check' })
        if (action.inMs > 0) setTimeout(check, action.inMs)
        else setImmediate(check)
        return
      }
      case 'wake':
        clearTimeout(this.#timer)
        this.#timer = setTimeout(() => this.handle({ kind: 'woken' }), action.inMs)
        return
    }
  }

  #checkDirectory({ uid, directory }: SupervisedRunSpec): void {
    const stats = lstatSync(directory)
    if (directory !== join(this.#runsDir, uid) || !stats.isDirectory() || stats.uid !== process.geteuid?.())
      throw new Error(`the directory of Run ${uid} must be ${uid} in ${this.#runsDir} and belong to this user, got ${directory}`)
  }

  #record(run: SupervisedRunSpec): void {
    // While a process named here is alive, no sweep removes the directory.
    const owners = [
      [process.pid, readStartTime(process.pid) ?? ''],
      [this.#worker.pid, this.#worker.startTime],
    ]
    for (const [pid, startTime] of owners) writeFileSync(join(run.directory, `${ownerPrefix}${pid}`), `${startTime}`, { mode: 0o600 })
    writeRecord(run)
    const fifo = join(run.directory, fifoName)
    const reaper = new Reaper({
      fifo,
      runUid: run.uid,
      cgroup: cgroupOfRun(run.uid)?.path,
      onArmed: () => this.handle({ kind: 'armed', uid: run.uid, fifo }),
    })
    this.#reapers.set(run.uid, reaper)
  }

  async #awaitExit(uid: string): Promise<void> {
    while (this.#supervision.groupsOf(uid).some(group => groupExists(group))) await new Promise(resolve => setTimeout(resolve, exitCheckMs))
    await killRunProcesses(uid)
    await cgroupOfRun(uid)?.remove()
    this.handle({ kind: 'exited', uid })
  }

  async #cleanUp(run: SupervisedRunSpec, savedDigest: string | undefined): Promise<void> {
    const failure = await salvageUnlessSaved(run, savedDigest, salvageTimeoutMs)
    // What cannot be removed now is tried again by a later sweep.
    if (failure === undefined) await removeTree(run.directory).catch(() => {})
    else keepForRecovery(run.directory, `${ownerPrefix}${process.pid}`, failure)
    this.handle({ kind: 'cleanedUp', uid: run.uid })
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#cleaning.delete(tracked))
    this.#cleaning.add(tracked)
    // A later sweep retries what failed.
    tracked.catch(() => {})
  }
}

/** In a timer an error would end the supervisor for all workers. */
function attempt(what: () => unknown): void {
  try {
    what()
  } catch {
    // The deadline is enforced by the next signal, and by the sweep of the Run's directory.
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

/** Returns undefined if nothing remains to be saved: no state, or the store has it, at least as an orphan (invariant 3). Otherwise the error. */
export async function salvageUnlessSaved(
  { salvage, directory: root }: Pick<SupervisedRunSpec, 'salvage' | 'directory'>,
  savedDigest: string | undefined,
  deadlineMs: number,
): Promise<string | undefined> {
  if (!salvage) return undefined
  try {
    const { readStateFile, recoverState } = await import('../../../stores/state/recover-state.ts')
    const bytes = await readStateFile(root, salvage.path)
    if (bytes && createHash('sha256').update(bytes).digest('hex') === savedDigest) return undefined
    await recoverState({ ...salvage, root, deadlineMs })
    return undefined
  } catch (error) {
    // The file stays, for a user.
    return (error as Error).message
  }
}
