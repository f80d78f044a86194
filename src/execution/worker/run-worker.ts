import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Run } from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import { decideHealth, type WorkerHealth } from './decide-health.ts'
import { type DrainReason, decideStep, type WorkerStep } from './decide-step.ts'
import { DetectedCapabilities } from './detected-capabilities.ts'
import { Drain } from './drain.ts'
import { workerExitCodes } from './exit-codes.ts'
import { checkLeaseTimings, defaultLeaseTimings, type LeaseTimings } from './lease/lease-timings.ts'
import { RegistrationError } from './lease/registration.ts'
import { observeCredential } from './observe-credential.ts'
import type { ExecuteResult, Execution } from './run/execution.ts'
import type { RunAccess } from './run/run-access.ts'
import { StoreConnections } from './run/store-connections.ts'
import { RunAssignments } from './run-assignments.ts'
import { RunRejections } from './run-rejections.ts'
import { RunSlots } from './run-slots.ts'
import {
  defaultParts,
  executionSettings,
  type HeartbeatPart,
  openLog,
  type RunWorkerOptions,
  type SupervisorPart,
  type WorkerParts,
} from './run-worker-options.ts'
import { onceAborted } from './signals.ts'
import { bootMs, SupervisorUnavailableError } from './supervisor/index.ts'
import { UnsavedStates } from './unsaved-states.ts'
import { noCapabilities } from './worker-capabilities.ts'
import { describeEnd, isFenced, type WorkerFence } from './worker-end.ts'
import { type WorkerActivity, WorkerStatusReporter } from './worker-status-reporter.ts'
import { listAssignedRuns, watchAssignedRuns, watchOwnWorker } from './worker-watches.ts'

const defaultDrainGraceMs = 600_000
const maxTimerMs = 2 ** 31 - 1

/**
 * Runs a worker from its registration to its exit: heartbeat, supervisor, Runs. Resolves with one of {@link workerExitCodes}; rejects only
 * for a bug, and with {@link SupervisorUnavailableError} if its machine cannot start its Run.
 * @param parts for tests. Default: a supervisor process, a heartbeat thread and real executions.
 */
export async function runWorker(options: RunWorkerOptions, parts: WorkerParts = defaultParts): Promise<{ exitCode: number }> {
  const timings = checkLeaseTimings({ ...defaultLeaseTimings, ...options.lease })
  return await new WorkerProcess(options, timings, parts).run()
}

class WorkerProcess {
  readonly #options: RunWorkerOptions
  readonly #timings: LeaseTimings
  readonly #parts: WorkerParts
  readonly #supervisor: SupervisorPart
  readonly #heartbeat: HeartbeatPart
  readonly #store: StoreConnections
  readonly #assignments: RunAssignments
  readonly #slots: RunSlots
  readonly #rejections: RunRejections
  readonly #drain: Drain
  readonly #capabilities: DetectedCapabilities
  readonly #unsavedStates: UnsavedStates
  readonly #statusReporter: WorkerStatusReporter
  /** A Run may outlive a short-lived credential: the supervisor always has the current one. */
  readonly #checkCredential: () => void
  readonly #stopWatches = new AbortController()
  readonly #fence: WorkerFence = {
    isLeaseLost: false,
    isSupervisorLost: false,
    supervisorError: undefined,
    isCredentialRejected: false,
    crash: undefined,
  }
  #workerVersion: string | undefined
  #isRegistered = false
  /** A Run has not ended and this worker does not continue it: dispatch ends it. */
  #hasAbandonedRun = false
  #exitCode: number = workerExitCodes.ok
  #idleSinceMs = performance.now()
  #idleSinceWallMs = Date.now()
  #wake: () => void = () => {}

  constructor(options: RunWorkerOptions, timings: LeaseTimings, parts: WorkerParts) {
    this.#options = options
    this.#timings = timings
    this.#parts = parts
    const { client, token, caCertificate, name, pool, once, slots = 1, version, cacheDir, runsDir, log } = options
    this.#assignments = new RunAssignments({ workerName: name, lifecycle: once ? 'OneShot' : 'Warm', slots })
    this.#rejections = new RunRejections({
      ...{ workerName: name, log },
      reject: run => parts.rejectRun({ client, run, workerName: name, slots, mayWrite: () => !this.#isFenced }),
    })
    this.#slots = new RunSlots({
      execute: run => this.#execute(run),
      onResult: (run, result) => {
        this.#assignments.ended(run.metadata.uid)
        this.#onResult(run, result)
      },
      onCrash: error => this.#onCrash(error),
      onChange: () => this.#onSlotsChange(),
    })
    this.#drain = new Drain(options.drainGraceMs ?? defaultDrainGraceMs, () =>
      this.#slots.stopAll({ kind: 'WorkerDrained', because: 'GraceExpired' }),
    )
    this.#capabilities = new DetectedCapabilities({
      configured: options.capabilities,
      once,
      cacheDir,
      onChange: () => this.#statusReporter.report(),
      onError: (error, message) => log.warn({ worker: name, error: String(error) }, message),
    })
    this.#unsavedStates = new UnsavedStates(runsDir, () => this.#statusReporter.report())
    this.#supervisor = parts.createSupervisor({
      times: timings,
      renewedAtMs: bootMs(),
      cacheDir,
      runsDir,
      onSocket: path => this.#heartbeat.useSupervisor(path),
      onLost: () => this.#onSupervisorLost(),
    })
    this.#checkCredential = observeCredential(token, current => this.#supervisor.renewCredential(current))
    this.#heartbeat = parts.createHeartbeat({
      ...{ token, caCertificate, client, name, pool, once, slots, version, timings },
      worker: this.#supervisor.worker,
      capabilities: options.capabilities ?? noCapabilities,
      workerUid: options.workerUid,
      podUid: options.podUid,
      onRegistered: ({ workerVersion }) => {
        this.#workerVersion = workerVersion
        this.#store.prewarm()
      },
      onRenewed: atMs => this.#onRenewed(atMs),
      onLeaseLost: () => this.#onLeaseLost(),
      onError: error => this.#onHeartbeatError(error),
    })
    this.#store = new StoreConnections(options.storeUrl, options.storeCaCertificate)
    this.#statusReporter = new WorkerStatusReporter(
      () => this.#activity(),
      status => this.#heartbeat.reportStatus(status),
      error => log.warn({ worker: name, error: String(error) }, 'failed to report the status of the worker'),
    )
    options.onHealth?.(() => this.#health())
  }

  async run(): Promise<{ exitCode: number }> {
    const registering = this.#heartbeat.start()
    // In parallel with the registration, once that is sent: the watch that delivers a Run should be open when the worker is ready.
    const watchingRuns = nextTurn().then(() => this.#watchRuns())
    void this.#store.loadModules()
    import('./run/index.ts').catch(() => {})
    try {
      await registering
    } catch (error) {
      return await this.#onRegistrationFailed(error, watchingRuns)
    }
    this.#isRegistered = true
    this.#unsavedStates.start()
    void this.#capabilities.detectIsolation()
    void this.#capabilities.detectEngines()
    void this.#capabilities.detectDependencies()
    this.#markIdle()
    // A quick Run ends before.
    if (this.#heartbeat.isStatusInLease) this.#statusReporter.schedule()
    const unsubscribe = this.#subscribeToSignals()
    const watchingWorker = this.#watchWorker()
    let hasEnded = false
    try {
      await this.#loop()
      hasEnded = true
    } finally {
      unsubscribe()
      this.#stopWatches.abort()
      this.#unsavedStates.stop()
      this.#supervisor.close()
      this.#logEnd()
      await this.#rejections.settled()
      const keepsWorker = this.#hasAbandonedRun || (this.#isReportedByHost && (!hasEnded || this.#exitCode !== workerExitCodes.ok))
      // Its Worker remains for a while, and must get no further Run.
      if (keepsWorker) await this.#startDrain('Fenced')
      await this.#statusReporter.close()
      if (hasEnded && this.#isLeftToController) await this.#heartbeat.stopRenewing()
      else await this.#heartbeat.deregister({ keepsWorker })
      await Promise.all([watchingRuns, watchingWorker])
      this.#store.destroy()
    }
    return { exitCode: this.#exitCode }
  }

  async #onRegistrationFailed(error: unknown, watchingRuns: Promise<void>): Promise<{ exitCode: number }> {
    const { log, name } = this.#options
    this.#stopWatches.abort()
    this.#store.destroy()
    if (!(error instanceof RegistrationError)) throw error
    log.warn({ worker: name, error: error.message }, 'failed to register')
    this.#supervisor.close()
    await this.#heartbeat.deregister()
    await watchingRuns
    return { exitCode: error.isRejected ? workerExitCodes.accessDenied : workerExitCodes.notRegistered }
  }

  #logEnd(): void {
    const { log, name, slots = 1 } = this.#options
    const runs = this.#assignments.startedCount
    const fence = this.#isFenced ? this.#fence : undefined
    const { reason, message } = describeEnd({ fence, drainReason: this.#drain.reason, slots, runs })
    log.info({ worker: name, reason, runs }, `the worker ends: ${message}`)
  }

  #subscribeToSignals(): () => void {
    const { signal, interruptSignal } = this.#options
    const unsubscribe = [
      onceAborted(signal, () => void this.#startDrain('Signal')),
      onceAborted(interruptSignal, () => this.#slots.stopAll({ kind: 'WorkerDrained', because: 'Interrupted' })),
    ]
    return () => unsubscribe.forEach(stop => void stop())
  }

  #onHeartbeatError(error: unknown): void {
    const { log, name } = this.#options
    this.#fence.isCredentialRejected = (error as { isRejected?: boolean }).isRejected === true
    log.warn({ worker: name, error: errorMessage(error) }, 'request to the API server failed')
  }

  #onRenewed(atMs: number): void {
    this.#fence.isCredentialRejected = false
    this.#supervisor.renewed(atMs)
    this.#checkCredential()
    this.#slots.renewed()
  }

  #onLeaseLost(): void {
    const { log, name } = this.#options
    log.warn({ worker: name }, 'the Lease was deleted or replaced: this worker was declared lost')
    this.#fence.isLeaseLost = true
    this.#slots.stopAll({ kind: 'OwnershipLost', detail: "the worker's Lease was deleted" })
    this.#wake()
  }

  #onSupervisorLost(): void {
    this.#fence.isSupervisorLost = true
    this.#slots.stopAll({ kind: 'SupervisorLost' })
    this.#wake()
  }

  /** The Run ends without having started: its worker reports why, and ends too. */
  #onSupervisorUnavailable(error: unknown): SupervisorUnavailableError {
    if (!(error instanceof SupervisorUnavailableError)) throw error
    this.#fence.supervisorError = error
    return error
  }

  /** Starts Runs until {@link decideStep} decides to exit. */
  async #loop(): Promise<void> {
    let hasChecked = false
    for (;;) {
      const step = this.#decide()
      if (step.kind === 'exitFenced') {
        if (this.#fence.crash !== undefined) throw this.#fence.crash
        if (this.#fence.supervisorError) throw this.#fence.supervisorError
        this.#exitCode = workerExitCodes.fenced
        return
      }
      if (step.kind === 'exit') {
        // Dispatch assigns no Run to a worker that drains, or that has executed its Runs. One assigned just before is found here.
        if (!this.#mayHaveMore() || hasChecked) return
        hasChecked = true
        const { client, name, runSelections = allRuns } = this.#options
        for (const run of await listAssignedRuns(client, name, runSelections)) this.#onRun(run)
        continue
      }
      hasChecked = false
      if (step.kind === 'drain') await this.#startDrain(step.reason)
      else if (step.kind === 'start') this.#startNext()
      else await this.#sleep()
    }
  }

  #decide(): WorkerStep {
    const { once, slots = 1, idleTimeoutMs = Number.POSITIVE_INFINITY, recycle = {} } = this.#options
    return decideStep({
      lifecycle: once ? 'OneShot' : 'Warm',
      slots,
      started: this.#assignments.startedCount,
      running: this.#slots.runningCount,
      assigned: this.#assignments.assignedCount,
      isDraining: this.#drain.reason !== undefined,
      // An idle worker has nothing to stop, but once its Lease has expired it counts as lost.
      isFenced: this.#isFenced,
      idleMs: this.#idleMs,
      idleTimeoutMs,
      recycleAfterRuns: recycle.afterRuns ?? Number.POSITIVE_INFINITY,
      memoryBytes: process.memoryUsage.rss(),
      recycleAboveBytes: recycle.aboveMemoryBytes ?? Number.POSITIVE_INFINITY,
    })
  }

  get #isFenced(): boolean {
    return isFenced(this.#fence) || this.#leaseRemainingMs <= 0
  }

  get #leaseRemainingMs(): number {
    return this.#timings.durationMs - (bootMs() - this.#heartbeat.renewedAtMs)
  }

  get #idleMs(): number {
    return performance.now() - this.#idleSinceMs
  }

  /** No Run can be assigned to it any more, and the end of its Pod proves its own. */
  get #isLeftToController(): boolean {
    const { isDeregisteredByController, once, slots = 1 } = this.#options
    const hasEndedItsRuns = once && this.#assignments.startedCount >= slots && !this.#hasAbandonedRun
    return isDeregisteredByController === true && hasEndedItsRuns && !this.#isFenced && this.#exitCode === workerExitCodes.ok
  }

  /** `oarlock pool` reports the exit code in the Worker. Later the start is proven, and a failure is not one of it. */
  get #isReportedByHost(): boolean {
    const { workerUid, podUid } = this.#options
    return workerUid !== undefined && podUid === undefined && this.#assignments.startedCount === 0
  }

  #mayHaveMore(): boolean {
    const { once, slots = 1 } = this.#options
    return this.#drain.reason !== undefined && !(once && this.#assignments.startedCount >= slots)
  }

  /** Resolves when something changes, the Lease expires, or the idle timeout ends. */
  async #sleep(): Promise<void> {
    const { idleTimeoutMs = Number.POSITIVE_INFINITY } = this.#options
    const idleRemainingMs = this.#slots.runningCount > 0 ? Number.POSITIVE_INFINITY : idleTimeoutMs - this.#idleMs
    const ms = Math.max(0, Math.min(idleRemainingMs, Math.max(this.#leaseRemainingMs, 50)))
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, Math.min(ms, maxTimerMs))
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #startNext(): void {
    const run = this.#assignments.startNext()
    if (!run) return
    this.#capabilities.recordSource(run)
    this.#slots.start(run)
    this.#statusReporter.started(run.metadata.resourceVersion, this.#workerVersion)
  }

  async #execute(run: Run): Promise<Execution> {
    const { name, log, openRunAccess } = this.#options
    const supervisorError = await this.#supervisor.ready.then(
      () => undefined,
      error => this.#onSupervisorUnavailable(error),
    )
    let access: RunAccess | undefined
    try {
      access = await openRunAccess?.(run, this.#workerVersion)
    } catch (error) {
      log.warn({ worker: name, run: objectKey(run), error: errorMessage(error) }, 'the partition of a run cannot be used')
      return abandonedExecution
    }
    const options = access ? { ...this.#options, ...access } : this.#options
    const { storeAgent } = access ?? { storeAgent: this.#store.agent }
    log.info({ worker: name, run: objectKey(run), type: run.spec.type }, 'run started')
    const execution = await this.#parts.executeRun({
      ...executionSettings(options),
      run,
      storeAgent,
      times: this.#timings,
      sinceRenewalMs: () => bootMs() - this.#heartbeat.renewedAtMs,
      supervisor: this.#supervisor,
      ...(supervisorError && { stopCause: { kind: 'SupervisorLost' as const, detail: supervisorError.message } }),
      log: await openLog(options, storeAgent, run),
      onEngine: (engine, version) => this.#capabilities.recordEngine(engine, version),
      onDependencies: key => this.#capabilities.recordDependencies(key),
    })
    if (access) void execution.done.then(access.release, access.release)
    return execution
  }

  #onResult(run: Run, result: ExecuteResult): void {
    const { log, name } = this.#options
    log.info({ worker: name, run: objectKey(run), result }, 'run ended')
    if (result !== 'abandoned') return
    this.#hasAbandonedRun = true
    // Another process decided that a Run is not this worker's: it starts no further Run, and the others may finish.
    this.#exitCode = workerExitCodes.fenced
    void this.#startDrain('Fenced')
  }

  #onCrash(error: unknown): void {
    this.#fence.crash ??= error
    this.#hasAbandonedRun = true
    // The engines of the other Runs stop as they intend before this process exits.
    this.#slots.stopAll({ kind: 'WorkerDrained', because: 'WorkerFailed' })
  }

  #onSlotsChange(): void {
    if (this.#slots.runningCount === 0) this.#markIdle()
    this.#statusReporter.schedule()
    this.#wake()
  }

  #markIdle(): void {
    this.#idleSinceMs = performance.now()
    this.#idleSinceWallMs = Date.now()
  }

  async #startDrain(reason: DrainReason, options: { isCancelable?: boolean } = {}): Promise<void> {
    if (!this.#drain.start(reason, options)) return
    const { log, name } = this.#options
    log.info({ worker: name, reason, runs: this.#slots.runningCount }, 'draining')
    await this.#statusReporter.report()
    this.#wake()
  }

  /** The worker's object no longer requests a drain. No Run is assigned to it before it has reported that it does not drain. */
  #cancelDrain(): void {
    if (this.#slots.isStopping || !this.#drain.cancel()) return
    this.#options.log.info({ worker: this.#options.name, runs: this.#slots.runningCount }, 'drain canceled')
    this.#statusReporter.schedule()
    this.#wake()
  }

  #activity(): WorkerActivity {
    const runs = this.#slots.keys
    return {
      runs,
      idleSinceMs: runs.length > 0 ? undefined : this.#idleSinceWallMs,
      // A one-shot worker that has ended its Runs exits. Reported as Ready, it would get Runs that it rejects.
      draining: this.#drain.reason ?? (this.#hasEndedOnce ? 'RunLimitReached' : undefined),
      unsavedStates: this.#unsavedStates.status,
      ...this.#capabilities.status,
    }
  }

  get #hasEndedOnce(): boolean {
    const { startedCount, assignedCount } = this.#assignments
    return this.#options.once && startedCount > 0 && assignedCount === 0 && this.#slots.runningCount === 0
  }

  #health(): WorkerHealth {
    return decideHealth({
      isRegistered: this.#isRegistered,
      sinceRenewalMs: bootMs() - this.#heartbeat.renewedAtMs,
      timings: this.#timings,
      drainReason: this.#drain.reason,
      supervisor: this.#fence.isSupervisorLost ? 'lost' : this.#supervisor.pid === undefined ? 'disconnected' : 'connected',
    })
  }

  #onRun(run: Run): void {
    const admission = this.#assignments.observe(run)
    if (admission === 'rejected') this.#reject(run)
    if (!this.#slots.observe(run) && admission === 'accepted') this.#wake()
  }

  /** Several dispatchers may have assigned Runs to the same slot. Its status shows them all what it executes. */
  #reject(run: Run): void {
    this.#rejections.begin(run)
    void this.#statusReporter.report()
  }

  #onRunRemoved(run: Run): void {
    this.#assignments.remove(run)
    this.#slots.stop(run.metadata.uid, removedCause)
  }

  #watchRuns(): Promise<void> {
    const { client, name, runSelections: selections = allRuns, log } = this.#options
    return watchAssignedRuns({
      ...{ client, name, selections, signal: this.#stopWatches.signal },
      onReplace: runs => {
        this.#slots.stopMissing(new Set(runs.map(run => run.metadata.uid)), removedCause)
        for (const run of this.#assignments.replace(runs)) this.#reject(run)
        for (const run of runs) this.#slots.observe(run)
        this.#wake()
      },
      onRun: run => this.#onRun(run),
      onRemoved: run => this.#onRunRemoved(run),
      // Before the registration its own error is reported instead.
      onError: error => this.#isRegistered && log.warn({ worker: name, error: errorMessage(error) }, 'the watch of Runs failed'),
    })
  }

  #watchWorker(): Promise<void> {
    const { client, name, log } = this.#options
    return watchOwnWorker({
      ...{ client, name, signal: this.#stopWatches.signal },
      onWorker: worker => {
        if (worker.spec.drain) void this.#startDrain('DrainRequested', { isCancelable: true })
        else this.#cancelDrain()
      },
      // No Run is assigned to a worker without its object.
      onDeleted: () => void this.#startDrain('DrainRequested'),
      onError: error => log.warn({ worker: name, error: errorMessage(error) }, 'the watch of the Worker failed'),
    })
  }
}

const allRuns = [{}]

/** With a field selector, DELETED also means that spec.workerName names another worker. */
const removedCause = { kind: 'OwnershipLost', detail: 'it was deleted or assigned to another worker' } as const

/** Of a Run that this worker cannot reach: it leaves the Run to dispatch, which ends it with the worker's Lease. */
const abandonedExecution: Execution = { done: Promise.resolve('abandoned'), observe: () => {}, stop: () => {}, renewed: () => {} }

const errorMessage = (error: unknown): string => String((error as Error)?.message ?? error)
