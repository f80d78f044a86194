import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import type { Agent } from 'node:http'
import { join } from 'node:path'
import { defaults, isMutating, type Run, type RunStatus, satisfiesVersion } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { type Json, parseDuration, rfc3339 } from '../../../kubernetes/object/index.ts'
import { LockedError, StaleEpochError, StateClient, type StateFileStream, streamStateFile } from '../../../stores/state/index.ts'
import { type ApplyResult, type Engine, type EngineContext, EngineError, loadEngine, type PlanResult } from '../../engine/index.ts'
import {
  createProcessRunner,
  createRunDirectory,
  fetchSource,
  gitCredentials,
  killGroup,
  killRunProcesses,
  killStackWriters,
  machineOomKills,
  type ProcessRunner,
  type RunDirectory,
  type RunIsolation,
  type RunUsage,
  signalGroup,
} from '../../workspace/index.ts'
import { type EngineEnvironment, selectEngineEnvironment } from '../engine-environment.ts'
import type { FenceTimings } from '../lease/decide-fence.ts'
import { startFenceTimer } from '../lease/fence-timer.ts'
import { bootMs, type SupervisedRun, type SupervisorClient } from '../supervisor/index.ts'
import { type Failure, failureOf, failureOfStop, truncateMessage } from './failure.ts'
import { type RunInputs, readInputs, stringsIn } from './inputs.ts'
import { createIsolation, runCacheDir, stopCauseOf } from './isolation.ts'
import { deleteOutputs, markSecretOutputs, outputsDigest, publicOutputs, writeOutputs } from './outputs.ts'
import type { RunLog } from './run-log.ts'
import { RunReporter } from './run-reporter.ts'
import { forbidsWrites, type StopCause, StopError } from './stop-cause.ts'

export type ExecuteOptions = {
  client: Client
  run: Run
  workerName: string
  storeUrl: string
  caCertificate: string | undefined
  /** Connections to the stores. */
  storeAgent: Agent
  /** Of the stores; a function where it changes. */
  token: string | (() => string)
  runsDir: string
  cacheDir: string
  allowPaths: readonly string[]
  /** Absolute paths that sandboxes may read besides the system's programs. */
  sandboxBinds: readonly string[]
  /** Variables of this process's environment that the engine gets: names, or prefixes followed by `*`. */
  engineEnvironment: readonly string[]
  times: FenceTimings
  /** Milliseconds since before the last successful renewal was sent (invariant 2). */
  sinceRenewalMs(): number
  supervisor: SupervisorClient
  log: RunLog
  /** Told which version of the Run's engine there is now; undefined: none. */
  onEngine?(engine: string, version: string | undefined): void
}

/**
 * `reported`: the Run's end is written and everything is cleaned up. `unsaved`: it is written, but the supervisor still has to save the
 * state. `abandoned`: it is not ours to write; the supervisor cleans up.
 */
export type ExecuteResult = 'reported' | 'unsaved' | 'abandoned'

/** A Run that this worker works on. */
export type Execution = {
  done: Promise<ExecuteResult>
  /** Takes what a watch brought. */
  observe(run: Run): void
  /** Stops the engine; the first cause is the one reported. */
  stop(cause: StopCause): void
  /** The Lease was renewed. */
  renewed(): void
}

/** As long as the Lease stands nobody takes over: time for the supervisor to save the last state as the newest, not as an orphan. */
const abandonMs = 5_000
/** After its timeout an engine has the interrupt ladder; then the supervisor takes it for one whose worker stands still. */
const overtimeMs = 120_000

/** From SIGINT to SIGTERM, and from there to SIGKILL, for a Run that somebody else may already be doing again. */
const hastenMs = 1_500

/**
 * Does one Run from Preparing to its end. What it started is gone, what the engine wrote is saved, the lock is released and the
 * directory removed before `done` resolves with `reported`; with `abandoned` the supervisor has to do that.
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
  readonly #reporter: RunReporter
  readonly #state: StateClient
  readonly #fence: ReturnType<typeof startFenceTimer>
  /** Aborted when the engine has to stop. */
  readonly #abort = new AbortController()
  /** Aborted when nothing may be written any more. */
  readonly #dead = new AbortController()
  readonly #groups = new Set<number>()
  #cause: StopCause | undefined
  #stateVersion: number | undefined
  /** The engine may have written state that the store has not acknowledged. */
  #isUnsaved = false
  #timeout: NodeJS.Timeout | undefined
  #isolation: RunIsolation | undefined
  #supervised: SupervisedRun | undefined
  /** A program was ended by SIGKILL. */
  #wasKilled = false
  readonly #workerEnv: EngineEnvironment
  readonly #oomKillsBefore = machineOomKills()

  constructor(options: ExecuteOptions) {
    this.#options = options
    this.#workerEnv = selectEngineEnvironment(process.env, options.engineEnvironment)
    const { run, client, workerName, storeUrl, storeAgent, token, times, sinceRenewalMs } = options
    this.#reporter = new RunReporter({ client, run, workerName, mayWrite: () => sinceRenewalMs() < times.killMs })
    this.#state = new StateClient({
      baseUrl: storeUrl,
      agent: storeAgent,
      token,
      namespace: run.metadata.namespace ?? 'default',
      stack: run.spec.stackRef.name,
      runName: run.metadata.name,
      epoch: run.spec.epoch,
    })
    this.#fence = startFenceTimer({
      times,
      sinceRenewalMs,
      onStep: step => {
        // The abort makes the runner send SIGINT: a second one from here would make terraform drop what it has not saved.
        this.stop({ kind: 'LeaseLost' })
        if (step === 'SIGTERM' || step === 'SIGKILL') this.#signalAll(step)
        if (step === 'SIGKILL') this.#dead.abort(new StopError({ kind: 'LeaseLost' }))
      },
    })
    this.done = this.#execute()
  }

  observe(run: Run): void {
    const { metadata, spec } = this.#options.run
    if (run.metadata.uid !== metadata.uid) return
    this.#reporter.observe(run)
    if (run.spec.workerName !== spec.workerName) this.stop({ kind: 'OwnershipLost', detail: 'it was given to another worker' })
    else if (run.status?.phase === 'Lost') this.stop({ kind: 'OwnershipLost', detail: 'it was declared Lost' })
    // A Run that is being deleted stays, by dispatch's finalizer, until it has ended (invariant 1).
    else if (run.spec.cancel || run.metadata.deletionTimestamp) this.stop({ kind: 'Canceled' })
  }

  renewed(): void {
    this.#fence.poke()
  }

  stop(cause: StopCause): void {
    const isFirst = this.#cause === undefined
    if (isFirst || forbidsWrites(cause)) this.#cause = cause
    if (isFirst) {
      this.#supervised?.interrupted()
      this.#abort.abort(new StopError(cause))
    }
    if (!forbidsWrites(cause) || this.#dead.signal.aborted) return
    // Invariant 1: another Run of the Stack may begin at any moment.
    this.#dead.abort(new StopError(cause))
    setTimeout(() => this.#signalAll('SIGTERM'), hastenMs).unref()
    setTimeout(() => this.#signalAll('SIGKILL'), 2 * hastenMs).unref()
  }

  #signalAll(signal: NodeJS.Signals): void {
    for (const group of this.#groups) signalGroup(group, signal)
  }

  async #execute(): Promise<ExecuteResult> {
    const { run, log } = this.#options
    let directory: RunDirectory | undefined
    let isLocked = false
    let end: Partial<RunStatus> & Pick<RunStatus, 'phase'>
    try {
      this.observe(run)
      log.append(formatBegin(run))
      // Beside each other: whoever is told that the Run is not its own has an older epoch, too, and gets no lock that counts.
      const preparing = this.#reporter.reportStarted()
      preparing.catch(() => {})
      const timeout = run.spec.stack.timeout ?? defaults.timeout
      this.#timeout = setTimeout(() => this.stop({ kind: 'Timeout', timeout }), Math.min(parseDuration(timeout), 2 ** 31 - 1))
      this.#abort.signal.throwIfAborted()
      if (isMutating(run.spec.type)) {
        const { broke } = await this.#state.lock({ signal: this.#abort.signal })
        isLocked = true
        await preparing
        if (broke)
          log.append(`the state lock of ${broke.kind === 'Run' ? `Run ${broke.runName}` : broke.who}, which is gone, was taken over`)
      }
      await preparing
      directory = await createRunDirectory(this.#options.runsDir, run.metadata.uid)
      end = await this.#work(directory)
    } catch (error) {
      end = this.#failed(error)
    }
    clearTimeout(this.#timeout)
    return await this.#finish(end, directory, isLocked)
  }

  async #work(directory: RunDirectory): Promise<Partial<RunStatus> & Pick<RunStatus, 'phase'>> {
    const { client, run, log } = this.#options
    const { signal } = this.#abort
    const { type, stack: spec } = run.spec
    const loading = loadEngine(spec.engine)
    loading.catch(() => {})
    this.#isolation = await createIsolation({
      ...this.#options,
      directory,
      cacheDir: this.#cacheDir,
      onExceeded: cause => {
        this.stop(cause)
        // What takes too much gets no time to take more; what fills the disk may still save its state.
        if (cause.kind !== 'DiskLimit') this.#signalAll('SIGKILL')
      },
    })
    const statePath = spec.state === 'External' ? undefined : join(directory.scratch, 'terraform.tfstate')
    const timeoutMs = parseDuration(spec.timeout ?? defaults.timeout)
    this.#supervised = this.#options.supervisor.supervise({
      uid: run.metadata.uid,
      directory: directory.root,
      salvage: isMutating(type) ? this.#salvage(statePath) : undefined,
      endsByMs: bootMs() + timeoutMs + overtimeMs,
    })
    if (signal.aborted) this.#supervised.interrupted()

    const killing = this.#killWriters()
    killing.catch(() => {})
    // Awaited whatever becomes of the others: what looks for processes of the Stack must not find those of its next Run.
    const [inputs, known] = await Promise.all([readInputs(client, run, signal), this.#state.read({ signal })]).finally(() => killing)
    // Our own token, too: an engine that is curious finds it in /proc.
    log.addSecrets([...inputs.secrets, ...this.#workerEnv.secrets, textOf(this.#options.token)])
    if (known && statePath) {
      await writeFile(statePath, known.bytes, { mode: 0o600 })
      this.#saved(known.bytes)
    }
    const source = await this.#fetch(directory, inputs)
    signal.throwIfAborted()

    const engine = await loading
    const context = this.#context(directory, source, statePath, inputs)
    // Placed by what this worker said when it registered: somebody may have changed it since.
    const required = spec.placement?.engineVersion
    const found = await engine.detect(process.env, { isFresh: required !== undefined })
    this.#options.onEngine?.(spec.engine, found.found ? found.version : undefined)
    if (!found.found) {
      const message = `engine ${spec.engine} was not found on this worker; looked for ${found.lookedFor.join(', ')}; ${found.howToInstall}`
      throw new EngineError('EngineNotFound', message, { retryable: false })
    }
    if (required !== undefined && !satisfiesVersion(found.version, required)) {
      const message = `spec.placement.engineVersion ${required}: ${found.path} on worker ${this.#options.workerName} is ${spec.engine} ${found.version} by now`
      throw new EngineError('EngineVersionMismatch', message, { retryable: true })
    }
    // Invariant 2: an engine only runs while its deadline is kept beside it, too.
    await this.#supervised?.armed
    signal.throwIfAborted()
    await engine.prepare(context)
    signal.throwIfAborted()

    const stream = statePath && isMutating(type) ? this.#stream(statePath, known?.bytes) : undefined
    this.#isUnsaved = stream !== undefined
    try {
      const end = await this.#planAndApply(engine, context)
      // The final version must be acknowledged before anyone hears of success.
      await stream?.flush()
      this.#isUnsaved = false
      return { ...end, stateVersion: this.#stateVersion }
    } catch (error) {
      await this.#flushAfterFailure(stream, error)
      throw error
    } finally {
      stream?.close()
    }
  }

  /** Asked for after the lock (invariant 1), and while the stores answer: to look at every process of the host takes its time. */
  async #killWriters(): Promise<void> {
    const { run, log } = this.#options
    if (!isMutating(run.spec.type)) return
    const left = await killStackWriters(run.spec.stackRef.uid)
    if (left > 0)
      log.append(`${left} ${left === 1 ? 'process' : 'processes'} of an earlier Run of the Stack still ran and had to be killed`)
  }

  async #planAndApply(engine: Engine, context: EngineContext): Promise<Partial<RunStatus> & Pick<RunStatus, 'phase'>> {
    const { client, run, log } = this.#options
    const { type, approvedPlan } = run.spec
    // A plan writes nothing. What is wrong with what is said of it is known before anything is applied.
    const planning = this.#reporter.reportPhaseSoon({ phase: 'Planning', isolation: this.#isolation?.effective })
    planning.catch(error => error instanceof StopError && this.stop(error.cause))
    const plan = approvedPlan
      ? await this.#approved(engine, context, approvedPlan.digest)
      : await engine.plan(context, { destroy: type === 'Destroy', refreshOnly: type === 'Refresh' })
    this.#abort.signal.throwIfAborted()
    const summary = { plan: { digest: plan.digest, add: plan.add, change: plan.change, destroy: plan.destroy } }
    for (const line of plan.summary) log.append(line)
    if (type === 'Plan') {
      if (plan.hasChanges && plan.file && run.spec.stack.approval === 'Manual') {
        await this.#state.putPlan(plan.digest, await readFile(plan.file), { signal: this.#dead.signal })
      }
      return { phase: 'Succeeded', ...summary, changed: plan.hasChanges, message: formatPlan(plan, 'would be ') }
    }
    if (plan.hasChanges) await this.#reporter.reportPhase({ phase: 'Applying', ...summary })
    const result = await engine.apply(context, plan)
    return { phase: 'Succeeded', ...summary, ...(await this.#keepOutputs(client, run, result)), message: formatPlan(plan, '') }
  }

  async #keepOutputs(client: Client, run: Run, { outputs: made, resources, changed }: ApplyResult): Promise<Partial<RunStatus>> {
    const { log } = this.#options
    log.addSecrets(Object.values(made).flatMap(({ value, sensitive }) => (sensitive ? stringsIn(value) : [])))
    const { outputs, hidden } = markSecretOutputs(made, log.mask)
    if (hidden.length > 0) log.append(`outputs that hold a value of a Secret are kept as sensitive: ${hidden.join(', ')}`)
    if (run.spec.type === 'Destroy') {
      await deleteOutputs(client, run)
      return { changed, resources }
    }
    await writeOutputs(client, run, outputs)
    return { changed, resources, outputs: publicOutputs(outputs), outputsDigest: outputsDigest(outputs) }
  }

  async #approved(engine: Engine, context: EngineContext, digest: string): Promise<PlanResult> {
    const outdated = (why: string): EngineError =>
      new EngineError('PlanOutdated', `approved plan ${digest} is outdated: ${why}; a new plan has to be approved`, { retryable: true })
    const bytes = await this.#state.getPlan(digest, { signal: this.#abort.signal })
    if (!bytes) throw outdated('it is not kept any more')
    const file = join(context.scratch, 'approved.tfplan')
    await writeFile(file, bytes, { mode: 0o600 })
    const plan = await engine.readPlan(context, file)
    if (plan.digest !== digest) throw outdated(`against the present state it would do something else (${plan.digest})`)
    return plan
  }

  async #fetch(directory: RunDirectory, inputs: RunInputs): Promise<string> {
    const { run, cacheDir, allowPaths } = this.#options
    const { source } = run.spec.stack
    const secret = `${run.metadata.namespace}/${source.git?.secretRef?.name}`
    const credentials = inputs.gitSecret && gitCredentials(inputs.gitSecret, secret)
    const fetched = await fetchSource(source, run.spec.revision, directory.work, {
      allowPaths,
      credentials,
      signal: this.#abort.signal,
      cacheDir,
    })
    return fetched.directory
  }

  #context(directory: RunDirectory, source: string, statePath: string | undefined, inputs: RunInputs): EngineContext {
    const { client, run, log } = this.#options
    const { name, uid } = run.spec.stackRef
    return {
      spec: run.spec.stack,
      stack: { namespace: run.metadata.namespace ?? 'default', name, uid },
      epoch: run.spec.epoch,
      runName: run.metadata.name,
      directory: source,
      scratch: directory.scratch,
      statePath,
      env: { ...this.#workerEnv.env, ...inputs.env },
      variables: inputs.variables,
      sensitiveNames: inputs.sensitiveNames,
      run: this.#runner(directory),
      signal: this.#abort.signal,
      log: line => log.append(line),
      progress: progress =>
        this.#reporter.reportProgress(progress.current ? { ...progress, current: log.mask(progress.current) } : progress),
      client,
      kubeconfig: inputs.kubeconfig,
      cacheDir: this.#cacheDir,
      inventory: {
        read: async () => {
          const found = await this.#state.readInventory({ signal: this.#dead.signal })
          return found && (JSON.parse(found.bytes.toString('utf8')) as Json)
        },
        write: async value => {
          await this.#state.writeInventory(Buffer.from(JSON.stringify(value)), { signal: this.#dead.signal }).catch(error => {
            this.#onStateError(error)
            throw error
          })
        },
      },
    }
  }

  #runner({ home, tmp }: RunDirectory): ProcessRunner {
    const { run, times } = this.#options
    const runProgram = createProcessRunner({
      runUid: run.metadata.uid,
      writesStackUid: isMutating(run.spec.type) ? run.spec.stackRef.uid : undefined,
      home,
      tmp,
      wrapCommand: this.#isolation?.wrapCommand,
      onStart: group => {
        this.#groups.add(group)
        this.#supervised?.started(group)
      },
      onEnd: group => {
        this.#groups.delete(group)
        this.#supervised?.ended(group)
      },
    })
    return async options => {
      // An engine may save what it has after an interrupt, with a program of its own; not when time is up.
      // The clock is asked, too: of a worker that was stopped and goes on, a promise may be served before the fence's timer.
      const isLate = this.#options.sinceRenewalMs() >= times.interruptMs
      if (isLate) this.stop({ kind: 'LeaseLost' })
      if (isLate || this.#cause?.kind === 'LeaseLost' || this.#dead.signal.aborted)
        throw new StopError(this.#cause ?? { kind: 'LeaseLost' })
      const result = await runProgram(options)
      // 137: how a shell and bubblewrap say SIGKILL.
      this.#wasKilled ||= result.signal === 'SIGKILL' || result.exitCode === 137
      return result
    }
  }

  #stream(path: string, known: Buffer | undefined): StateFileStream {
    return streamStateFile({
      path,
      known,
      upload: async bytes => {
        this.#stateVersion = await this.#state.write(bytes, { signal: this.#dead.signal })
        this.#saved(bytes)
      },
      onError: error => this.#onStateError(error),
    })
  }

  get #cacheDir(): string {
    return runCacheDir(this.#options.run, this.#options.cacheDir)
  }

  #onStateError(error: unknown): void {
    if (error instanceof StaleEpochError) this.stop({ kind: 'OwnershipLost', detail: error.message })
    else if (error instanceof LockedError) this.stop({ kind: 'StateRefused', detail: error.message })
    else if (!(error instanceof StopError)) this.#options.log.append(`the state could not be saved yet: ${(error as Error).message}`)
  }

  #saved(bytes: Buffer): void {
    this.#supervised?.saved(createHash('sha256').update(bytes).digest('hex'))
  }

  /** A failed engine has changed things, too: what it knows of them must be saved. */
  async #flushAfterFailure(stream: StateFileStream | undefined, error: unknown): Promise<void> {
    if (!stream || this.#dead.signal.aborted) return
    try {
      await stream.flush()
      this.#isUnsaved = false
    } catch (flushError) {
      this.#onStateError(flushError)
      throw new Error(`${(error as Error).message}; and its state could not be saved: ${(flushError as Error).message}`, { cause: error })
    }
  }

  #salvage(statePath: string | undefined) {
    if (!statePath) return undefined
    const { storeUrl, caCertificate, token, run } = this.#options
    const parts = [run.metadata.namespace ?? 'default', run.spec.stackRef.name, 'run', run.metadata.name, 'state']
    const url = `${storeUrl.replace(/\/+$/, '')}/state/${parts.map(encodeURIComponent).join('/')}`
    return { url, caCertificate, token: textOf(token), epoch: run.spec.epoch, path: statePath }
  }

  #failed(error: unknown): Failure {
    const { log } = this.#options
    this.#findKernelKill()
    if (error instanceof StaleEpochError) this.stop({ kind: 'OwnershipLost', detail: error.message })
    if (error instanceof StopError && this.#cause === undefined) this.#cause = error.cause
    if (!this.#cause) return failureOf(error)
    const isBare = error instanceof StopError || (error as Error)?.name === 'AbortError'
    return failureOfStop(this.#cause, isBare ? undefined : log.mask((error as Error).message))
  }

  /** The kernel may have ended the engine for want of memory: in the Run's cgroup, or where the whole machine had none left. */
  #findKernelKill(): void {
    const { run } = this.#options
    if (this.#cause || !this.#isolation) return
    const { peakMemoryBytes } = this.#isolation.usage()
    if (this.#isolation.oomKills > 0) {
      this.stop(stopCauseOf(run, { kind: 'Memory', used: peakMemoryBytes, limit: this.#isolation.limits.memoryBytes ?? peakMemoryBytes }))
    } else if (this.#wasKilled && machineOomKills() > this.#oomKillsBefore) {
      this.stop({ kind: 'MachineOutOfMemory', used: peakMemoryBytes })
    }
  }

  async #finish(
    end: Partial<RunStatus> & Pick<RunStatus, 'phase'>,
    directory: RunDirectory | undefined,
    isLocked: boolean,
  ): Promise<ExecuteResult> {
    const { run, log } = this.#options
    try {
      await Promise.all([...this.#groups].map(group => killGroup(group)))
      if (directory) await killRunProcesses(run.metadata.uid)
      const usage = this.#isolation && roundUsage(this.#isolation.usage())
      await this.#isolation?.close()
      if (forbidsWrites(this.#cause) || this.#dead.signal.aborted) return await this.#leave()
      log.append(formatEnd(end))
      if (isLocked) await this.#state.unlock({ signal: this.#dead.signal, deadlineMs: 5_000 }).catch(error => this.#onUnlockError(error))
      const status = {
        ...end,
        ...(usage && { usage, isolation: this.#isolation?.effective }),
        finishedAt: rfc3339(Date.now()),
        log: await this.#unlessDead(log.close()),
      }
      if (status.message) status.message = truncateMessage(log.mask(status.message))
      if (!this.#isUnsaved) await directory?.remove()
      await this.#reporter.reportPhase(status)
      if (this.#isUnsaved) {
        await this.#supervised?.abandon(abandonMs)
        return 'unsaved'
      }
      this.#supervised?.done()
      return 'reported'
    } catch (error) {
      if (error instanceof StopError) return await this.#leave()
      throw error
    } finally {
      this.#fence.stop()
      await this.#state.close()
    }
  }

  /** What may take longer than there is time. @throws {StopError} */
  async #unlessDead<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#dead
    signal.throwIfAborted()
    const dead = Promise.withResolvers<never>()
    const onDead = () => dead.reject(signal.reason)
    signal.addEventListener('abort', onDead, { once: true })
    try {
      return await Promise.race([work, dead.promise])
    } finally {
      signal.removeEventListener('abort', onDead)
    }
  }

  async #leave(): Promise<ExecuteResult> {
    // The supervisor first: where packets vanish, the log may take long, and a worker that keeps its Run is taken for one that is stopped.
    await Promise.all([this.#supervised?.abandon(abandonMs), this.#options.log.close().catch(() => {})])
    return 'abandoned'
  }

  // Not worth failing for: the next Run takes the lock of one that has ended (invariant 4).
  #onUnlockError(error: unknown): void {
    this.#options.log.append(`the state lock could not be released: ${(error as Error).message}`)
  }
}

function roundUsage({ cpuSeconds, peakMemoryBytes, peakPids, peakDiskBytes }: RunUsage): NonNullable<RunStatus['usage']> {
  const seconds = Math.round(cpuSeconds * 1_000) / 1_000
  return { cpuSeconds: seconds, peakMemoryBytes, peakPids, ...(peakDiskBytes > 0 && { peakDiskBytes }) }
}

const textOf = (token: string | (() => string)): string => (typeof token === 'string' ? token : token())

function formatBegin({ metadata, spec }: Run): string {
  return `Run ${metadata.name}: ${spec.type} of Stack ${metadata.namespace}/${spec.stackRef.name} at ${spec.revision}, because of ${spec.reason}`
}

function formatPlan({ add, change, destroy, hasChanges }: PlanResult, would: string): string {
  if (!hasChanges) return 'nothing to change'
  return `${add} ${would}added, ${change} ${would}changed, ${destroy} ${would}destroyed`
}

function formatEnd({ phase, reason, message }: Partial<RunStatus>): string {
  return [`${phase}`, reason, message].filter(Boolean).join(': ')
}
