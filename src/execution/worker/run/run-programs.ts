import { isMutating, type Run } from '../../../api/index.ts'
import { createProcessRunner, type ProcessRunner, type RunDirectory, type RunIsolation } from '../../workspace/index.ts'
import type { FenceTimings } from '../lease/decide-fence.ts'
import type { SupervisedRun } from '../supervisor/index.ts'
import type { RunLog } from './run-log.ts'
import type { RunStopper } from './run-stopper.ts'
import { RunStoppedError } from './stop-cause.ts'

export type RunProgramsOptions = {
  run: Run
  directory: Pick<RunDirectory, 'home' | 'tmp'>
  isolation: Pick<RunIsolation, 'wrapCommand'>
  stopper: RunStopper
  supervised: Pick<SupervisedRun, 'started' | 'ended'>
  log: Pick<RunLog, 'secrets' | 'isFull' | 'drop'>
  times: FenceTimings
  sinceRenewalMs(): number
}

/** Starts the programs of a Run's engine; each is reported to the supervisor before it can outlive this worker. */
export class RunPrograms {
  readonly #options: RunProgramsOptions
  readonly #start: ProcessRunner
  #hasKilledProgram = false

  constructor(options: RunProgramsOptions) {
    this.#options = options
    const { run, directory, isolation, stopper, supervised, log } = options
    this.#start = createProcessRunner({
      runUid: run.metadata.uid,
      mutatedStackUid: isMutating(run.spec.type) ? run.spec.stackRef.uid : undefined,
      home: directory.home,
      tmp: directory.tmp,
      wrapCommand: isolation.wrapCommand,
      unsplittable: log.secrets,
      log,
      interrupt: group => stopper.interruptGroup(group),
      onStart: group => {
        stopper.addGroup(group)
        supervised.started(group)
      },
      onEnd: group => {
        stopper.removeGroup(group)
        supervised.ended(group)
      },
    })
  }

  /** A program exited by SIGKILL, which may have come from the kernel's OOM killer. */
  get hasKilledProgram(): boolean {
    return this.#hasKilledProgram
  }

  /**
   * Runs a program to its end. After an interrupt an engine may still start one, to save what it has; not once the Lease is late.
   * @throws {RunStoppedError} if nothing may be started any more.
   */
  readonly run: ProcessRunner = async options => {
    const { stopper, times, sinceRenewalMs } = this.#options
    // The clock is read here too: when a paused worker resumes, a promise may settle before the fence's timer fires.
    const isLate = sinceRenewalMs() >= times.interruptMs
    if (isLate) stopper.stop({ kind: 'LeaseLost' })
    if (isLate || stopper.cause?.kind === 'LeaseLost' || stopper.writeSignal.aborted) {
      throw new RunStoppedError(stopper.cause ?? { kind: 'LeaseLost' })
    }
    const result = await this.#start(options)
    // 137 is how a shell and bubblewrap report SIGKILL.
    this.#hasKilledProgram ||= result.signal === 'SIGKILL' || result.exitCode === 137
    return result
  }
}
