import {
  defaults,
  dependencyCacheKey,
  formatInterruption,
  isMutating,
  listPendingOperations,
  type PolicyViolation,
  type Run,
} from '../../../api/index.ts'
import { parseDuration, rfc3339 } from '../../../kubernetes/object/index.ts'
import { truncateText } from '../../../kubernetes/util/index.ts'
import { StaleEpochError } from '../../../stores/state/index.ts'
import { interruptTargetOf, loadEngine, ProviderUsage } from '../../engine/index.ts'
import {
  type ContentStore,
  createRunDirectory,
  directoryDigest,
  killRunProcesses,
  killStackWriters,
  machineOomKills,
  type RunDirectory,
  type RunIsolation,
} from '../../workspace/index.ts'
import { type EngineEnvironment, selectEngineEnvironment } from '../engine-environment.ts'
import { isWorkersInterrupt } from '../lease/decide-fence.ts'
import { startFenceTimer } from '../lease/fence-timer.ts'
import { bootMs, type SupervisedRun } from '../supervisor/index.ts'
import { createDependencyHost } from './dependency-host.ts'
import { createEngineContext } from './engine-context.ts'
import type { ExecuteOptions, ExecuteResult, Execution, RunStateClient } from './execution.ts'
import { failureOf, failureOfStop, maxMessageChars, withLeftDirectoryNote, withUnsavedNote } from './failure.ts'
import { findEngine } from './find-engine.ts'
import { findOomKill } from './find-oom-kill.ts'
import { formatResult, formatStart } from './format-run.ts'
import { InputError } from './input-error.ts'
import { contentStoreOf, createIsolation, enforcePolicy, runCacheDir } from './isolation.ts'
import { PhaseClock } from './phase-clock.ts'
import { planAndApply } from './plan-and-apply.ts'
import { configurationToKeep, fetchRunSource, readRunInputs } from './run-configuration.ts'
import { RunPrograms } from './run-programs.ts'
import { RunReporter } from './run-reporter.ts'
import { type RunResult, usageStatus } from './run-result.ts'
import { RunStateFile } from './run-state-file.ts'
import { RunStopper } from './run-stopper.ts'
import { salvageTarget } from './salvage-target.ts'
import { openState, statePathOf } from './state-of-run.ts'
import { canceledBy, forbidsWrites, RunStoppedError, type StopCause } from './stop-cause.ts'
import { trustDomainOf } from './trust-domain.ts'
import { unlessAborted } from './unless-aborted.ts'

/** While the Lease is valid no worker takes over: time for the supervisor to save the last state as the newest, not as an orphan. */
const abandonTimeoutMs = 5_000
/** After its timeout an engine has this long to stop; then the supervisor treats its worker as paused. */
const overtimeMs = 120_000
const unlockDeadlineMs = 5_000

/**
 * Executes one Run from Preparing to its result. Before `done` resolves with `reported`, every process it started has exited, the state is
 * saved, the lock is released and the directory removed; with `abandoned` the supervisor does that. More than 400 lines: the steps of a Run in their order.
 */
export function executeRun(options: ExecuteOptions): Execution {
  const execution = new RunExecution(options)
  return {
    done: execution.done,
    observe: run => execution.observe(run),
    stop: cause => execution.stop(cause),
    renewed: () => execution.renewed(),
  }
}

class RunExecution {
  readonly done: Promise<ExecuteResult>
  readonly #options: ExecuteOptions
  /** Why the Run must not be executed here. */
  readonly #violations: readonly PolicyViolation[]
  readonly #reporter: RunReporter
  readonly #state: RunStateClient
  readonly #stopper: RunStopper
  readonly #fence: ReturnType<typeof startFenceTimer>
  readonly #engineEnvironment: EngineEnvironment
  readonly #contentStore: ContentStore
  readonly #providerUsage = new ProviderUsage()
  /** Called when its programs have ended. */
  readonly #releases: (() => Promise<void>)[] = []
  readonly #machineOomKillsBefore = machineOomKills()
  readonly #phases = new PhaseClock()
  #timeout: NodeJS.Timeout | undefined
  /** From then on the supervisor stops the Run. */
  #endsByMs = Number.POSITIVE_INFINITY
  #directory: RunDirectory | undefined
  #isLocked = false
  #isolation: RunIsolation | undefined
  #supervised: SupervisedRun | undefined
  #stateFile: RunStateFile | undefined
  #programs: RunPrograms | undefined
  #dependencies: RunResult['dependencies']
  #pendingOperations: RunResult['pendingOperations']
  #hasInterrupted = false

  constructor(options: ExecuteOptions) {
    const { run, violations } = enforcePolicy(options.run, options.policy)
    this.#options = { ...options, run }
    this.#violations = violations
    this.#engineEnvironment = selectEngineEnvironment(process.env, options.engineEnvironment)
    this.#contentStore = contentStoreOf(run, options.cacheDir, options.providerCacheBytes)
    const { client, workerName, times, sinceRenewalMs } = options
    this.#reporter = new RunReporter({ client, run, workerName, mayWrite: () => sinceRenewalMs() < times.killMs })
    this.#state = options.state ?? openState(options)
    this.#stopper = new RunStopper({
      interruptTarget: interruptTargetOf(run.spec.stack.engine),
      onInterrupt: () => this.#supervised?.interrupted(),
      mayInterrupt: () =>
        isWorkersInterrupt(sinceRenewalMs(), times) && bootMs() < this.#endsByMs && this.#supervised?.isInterrupted !== true,
    })
    this.#fence = startFenceTimer({ times, sinceRenewalMs, onStep: step => this.#stopper.fence(step) })
    if (options.stopCause) this.stop(options.stopCause)
    this.done = this.#execute()
  }

  observe(run: Run): void {
    const { metadata, spec } = this.#options.run
    if (run.metadata.uid !== metadata.uid) return
    this.#reporter.observe(run)
    if (run.spec.workerName !== spec.workerName) this.stop({ kind: 'OwnershipLost', detail: 'it was assigned to another worker' })
    else if (run.status?.phase === 'Lost') this.stop({ kind: 'OwnershipLost', detail: 'it was declared Lost' })
    // A finalizer of dispatch keeps a Run that is being deleted until it has ended (invariant 1).
    else if (run.spec.cancel || run.metadata.deletionTimestamp) this.stop(canceledBy(run))
  }

  renewed(): void {
    this.#fence.update()
  }

  stop(cause: StopCause): void {
    this.#stopper.stop(cause)
  }

  async #execute(): Promise<ExecuteResult> {
    const { run, log } = this.#options
    let result: RunResult
    try {
      this.observe(run)
      this.#phases.enter('preparing')
      log.append(formatStart(run))
      for (const { field, message } of this.#violations) throw new InputError('PolicyViolation', field, message)
      this.#startTimeout()
      await this.#acquire()
      this.#directory = await createRunDirectory(this.#options.runsDir, run.metadata.uid)
      result = await this.#work(this.#directory)
    } catch (error) {
      result = this.#resultOf(error)
    }
    clearTimeout(this.#timeout)
    return await this.#finish(result)
  }

  #startTimeout(): void {
    const timeout = this.#options.run.spec.stack.timeout ?? defaults.timeout
    this.#timeout = setTimeout(() => this.stop({ kind: 'Timeout', timeout }), Math.min(parseDuration(timeout), 2 ** 31 - 1))
  }

  /** Reports Preparing, soon, and takes the state lock. */
  async #acquire(): Promise<void> {
    const { run, log } = this.#options
    // Not awaited: a worker whose report is rejected has an older epoch too, so its lock would have no effect.
    this.#reporter.reportStarted().catch(error => error instanceof RunStoppedError && this.stop(error.cause))
    this.#stopper.signal.throwIfAborted()
    if (!isMutating(run.spec.type)) return
    const { brokenHolder } = await this.#state.lock({ signal: this.#stopper.signal })
    this.#isLocked = true
    if (brokenHolder)
      log.append(
        `broke the state lock of ${brokenHolder.kind === 'Run' ? `Run ${brokenHolder.runName}` : brokenHolder.who}, which has ended`,
      )
  }

  async #work(directory: RunDirectory): Promise<RunResult> {
    const { client, run, log, workerName, onEngine } = this.#options
    const { type, stack: spec } = run.spec
    const stopper = this.#stopper
    const { signal } = stopper
    const loading = loadEngine(spec.engine)
    loading.catch(() => {})
    const isolation = await this.#isolate(directory)
    const supervised = this.#supervise(directory)
    const stateFile = this.#openStateFile(directory, supervised)
    this.#programs = new RunPrograms({ ...this.#options, directory, isolation, stopper, supervised })

    const killing = this.#killLeftovers()
    killing.catch(() => {})
    // Awaited even if the others fail: a scan for processes of the Stack must not find those of its next Run.
    const reading = readRunInputs({ run, state: this.#state, signal, log })
    const [configured, known] = await Promise.all([reading, spec.engine === 'pulumi' ? undefined : this.#state.read({ signal })]).finally(
      () => killing,
    )
    const { inputs } = configured
    // The worker's own token too: an engine can read it in /proc.
    log.addSecrets([...inputs.secrets, ...this.#engineEnvironment.secrets, currentToken(this.#options.token)])
    if (known) await stateFile.restore(known.bytes)
    const { cacheDir, gitCacheBytes: cacheBytes, allowPaths } = this.#options
    const sourceDirectory = await fetchRunSource(run, directory, configured, { allowPaths, signal, cacheDir, cacheBytes })
    const keeping = configurationToKeep(run, directory, inputs)
    keeping.catch(() => {})
    const sourceDigest = spec.approval === 'Manual' ? await directoryDigest(directory.files, directory.work) : run.spec.revision
    signal.throwIfAborted()

    const engine = await loading
    await findEngine(run, engine, { workerName, onEngine, onProgram: path => isolation.addProgram(path) })
    // Invariant 2: an engine runs only while the supervisor enforces its deadline too.
    await supervised.armed
    signal.throwIfAborted()
    const context = createEngineContext({
      ...{ client, run, directory, sourceDigest, sourceDirectory, inputs, stateFile, stopper, log },
      environment: this.#engineEnvironment,
      cacheDir: runCacheDir(run, this.#options.cacheDir),
      contentStore: this.#contentStore,
      providerUsage: this.#providerUsage,
      dependencies: createDependencyHost(run, isolation, this.#options, installed => {
        const { digest, manager, source, seconds, installSeconds, bytes } = installed
        this.#dependencies = { digest, manager, source, seconds, installSeconds, bytes }
        this.#options.onDependencies?.(dependencyCacheKey(trustDomainOf(run), digest))
      }),
      showProgram: path => isolation.addProgram(path),
      atEnd: release => void this.#releases.push(release),
      pendingOperations: (operations, { isOwn }) => {
        this.#pendingOperations = listPendingOperations(operations.map(({ type, urn }) => ({ type, urn: log.mask(urn) })))
        this.#hasInterrupted = isOwn
      },
      state: this.#state,
      programs: this.#programs,
      reporter: this.#reporter,
    })
    // Read before a program of the engine runs in the directory.
    const configuration = await keeping
    await engine.prepare(context)
    signal.throwIfAborted()

    if (isMutating(type)) stateFile.startStreaming()
    try {
      const result = await planAndApply({
        ...{ run, engine, context, stopper, log, configuration, phases: this.#phases },
        state: this.#state,
        reporter: this.#reporter,
        isolation: isolation.effective,
      })
      // The last version must be acknowledged before success is reported (invariant 5).
      await stateFile.flush()
      return result
    } catch (error) {
      await stateFile.flushAfterFailure(error)
      throw error
    } finally {
      stateFile.close()
    }
  }

  async #isolate(directory: RunDirectory): Promise<RunIsolation> {
    this.#isolation = await createIsolation({
      ...this.#options,
      directory,
      contentStore: this.#contentStore,
      onExceeded: (cause, mustKill) => {
        this.stop(cause)
        if (mustKill) this.#stopper.signalAll('SIGKILL')
      },
    })
    return this.#isolation
  }

  #supervise(directory: RunDirectory): SupervisedRun {
    const { run, supervisor, token } = this.#options
    const { type, stack } = run.spec
    const path = statePathOf(run, directory)
    this.#endsByMs = bootMs() + parseDuration(stack.timeout ?? defaults.timeout) + overtimeMs
    this.#supervised = supervisor.supervise({
      uid: run.metadata.uid,
      directory: directory.root,
      interrupt: interruptTargetOf(stack.engine),
      salvage: isMutating(type) && path ? salvageTarget(run, { ...this.#options, token: currentToken(token), path }) : undefined,
      endsByMs: this.#endsByMs,
    })
    if (this.#stopper.signal.aborted) this.#supervised.interrupted()
    return this.#supervised
  }

  #openStateFile(directory: RunDirectory, supervised: SupervisedRun): RunStateFile {
    this.#stateFile = new RunStateFile({
      client: this.#state,
      path: statePathOf(this.#options.run, directory),
      files: directory.files,
      stopper: this.#stopper,
      log: this.#options.log,
      onSaved: digest => supervised.saved(digest),
    })
    return this.#stateFile
  }

  /** Runs after the lock is held (invariant 1), in parallel with the requests to the stores: scanning every process takes a while. */
  async #killLeftovers(): Promise<void> {
    const { run, log } = this.#options
    if (!isMutating(run.spec.type)) return
    const count = await killStackWriters(run.spec.stackRef.uid)
    if (count > 0) log.append(`killed ${count} ${count === 1 ? 'process' : 'processes'} of an earlier Run of the Stack`)
  }

  /** The result of a Run whose work failed with `error`. */
  #resultOf(error: unknown): RunResult {
    const { log } = this.#options
    const stopper = this.#stopper
    this.#stopIfOomKilled()
    if (error instanceof StaleEpochError) stopper.stop({ kind: 'OwnershipLost', detail: error.message })
    if (error instanceof RunStoppedError) stopper.recordCause(error.cause)
    if (!stopper.cause) return failureOf(error)
    const isAbort = error instanceof RunStoppedError || (error as Error)?.name === 'AbortError'
    return failureOfStop(stopper.cause, isAbort ? undefined : log.mask((error as Error).message))
  }

  #stopIfOomKilled(): void {
    const isolation = this.#isolation
    if (this.#stopper.cause || !isolation) return
    const cause = findOomKill(this.#options.run, {
      cgroupOomKills: isolation.oomKills,
      peakMemoryBytes: isolation.usage().peakMemoryBytes,
      limitBytes: isolation.limits.memoryBytes,
      hasKilledProgram: this.#programs?.hasKilledProgram === true,
      machineOomKillsBefore: this.#machineOomKillsBefore,
      machineOomKills: machineOomKills(),
    })
    if (cause) this.stop(cause)
  }

  /** Cleans up, then reports the result: a status is written only after its effects. */
  async #finish(result: RunResult): Promise<ExecuteResult> {
    const { run, log } = this.#options
    const { writeSignal } = this.#stopper
    const providers = this.#providerUsage.total
    const phaseSeconds = this.#phases.enter(undefined)
    try {
      await this.#stopper.killAll()
      if (this.#directory) await killRunProcesses(run.metadata.uid)
      for (const release of this.#releases.splice(0)) await release()
      const usage = this.#isolation && usageStatus(this.#isolation.usage())
      await this.#isolation?.close()
      if (forbidsWrites(this.#stopper.cause) || writeSignal.aborted) return await this.#abandon()
      log.append(formatResult(result))
      if (this.#isLocked) await this.#unlock()
      const status: RunResult = {
        ...result,
        ...(this.#isolation && { isolation: this.#isolation.effective }),
        ...(usage && { usage }),
        ...(this.#dependencies && { dependencies: this.#dependencies }),
        ...(providers && { providers }),
        ...(this.#pendingOperations && { pendingOperations: this.#pendingOperations }),
        stateVersion: this.#state.newestVersion,
        finishedAt: rfc3339(Date.now()),
        phaseSeconds,
        log: await unlessAborted(log.close(), writeSignal),
      }
      if (this.#pendingOperations && this.#hasInterrupted && result.phase !== 'Succeeded')
        status.message = `${status.message}; ${formatInterruption(run.spec.stack.engine, this.#pendingOperations)}`
      // Masked first: half a secret is no longer recognized as one.
      if (status.message) status.message = truncateText(log.mask(status.message), maxMessageChars)
      const isUnsaved = this.#stateFile?.isUnsaved === true
      if (isUnsaved) status.message = withUnsavedNote(status.message, run)
      else await this.#removeDirectory(status)
      await this.#reporter.reportPhase(status)
      if (isUnsaved) {
        await this.#supervised?.abandon(abandonTimeoutMs)
        return 'unsaved'
      }
      this.#supervised?.done()
      return 'reported'
    } catch (error) {
      if (error instanceof RunStoppedError) return await this.#abandon()
      throw error
    } finally {
      this.#fence.stop()
      this.#reporter.close()
      await this.#state.close()
    }
  }

  /** A directory that stays does not change what the Run has done: the result notes it, and the supervisor of the host tries again later. */
  async #removeDirectory(status: RunResult): Promise<void> {
    try {
      await this.#directory?.remove()
    } catch (error) {
      // Masked: the Run has chosen the path that it names.
      status.message = truncateText(this.#options.log.mask(withLeftDirectoryNote(status.message, error as Error)), maxMessageChars)
    }
  }

  /** A lock that stays is no reason to fail: the next Run breaks the lock of one that has ended (invariant 4). */
  async #unlock(): Promise<void> {
    try {
      await this.#state.unlock({ signal: this.#stopper.writeSignal, deadlineMs: unlockDeadlineMs })
    } catch (error) {
      this.#options.log.append(`failed to release the state lock: ${(error as Error).message}`)
    }
  }

  /** Leaves the rest to the supervisor. */
  async #abandon(): Promise<ExecuteResult> {
    // The supervisor first: where packets are dropped, closing the log may take long, and a worker that keeps its Run counts as paused.
    await Promise.all([this.#supervised?.abandon(abandonTimeoutMs), this.#options.log.close().catch(() => {})])
    return 'abandoned'
  }
}

const currentToken = (token: string | (() => string)): string => (typeof token === 'string' ? token : token())
