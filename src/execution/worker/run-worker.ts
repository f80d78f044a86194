import type { Agent } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { cacheKey, maxCacheKeys, type Run, runResource, type Worker, workerResource } from '../../api/index.ts'
import { type Client, listWatch } from '../../kubernetes/client/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import type { Log } from '../../kubernetes/util/index.ts'
import { decideHealth, type WorkerHealth } from './decide-health.ts'
import { type DrainReason, decideStep } from './decide-step.ts'
import { workerExitCodes } from './exit-codes.ts'
import { Heartbeat } from './lease/heartbeat.ts'
import { checkLeaseTimings, defaultLeaseTimings, type LeaseTimings } from './lease/lease-timings.ts'
import { RegistrationError } from './lease/registration.ts'
import type { Execution } from './run/execution.ts'
import type { RunLog } from './run/run-log.ts'
import type { StopCause } from './run/stop-cause.ts'
import { createStoreAgent, prewarmStoreConnection } from './run/store-connections.ts'
import { bootMs, SupervisorClient } from './supervisor/index.ts'
import { engineVersions, noCapabilities, type WorkerCapabilities } from './worker-capabilities.ts'
import { type WorkerActivity, WorkerStatusReporter } from './worker-status-reporter.ts'

export type WorkerLog = Pick<Log, 'info' | 'warn'>

export type RunWorkerOptions = {
  name: string
  pool: string
  /** True: takes one Run for each slot and ends. False: takes one after the other. */
  once: boolean
  /** Runs at once. Default: 1. */
  slots?: number
  /** What it says of itself. Default: nothing. */
  capabilities?: WorkerCapabilities
  client: Client
  /** Where state and logs are kept, such as `https://127.0.0.1:7466`. */
  storeUrl: string
  caCertificate: string | undefined
  /** Of the client and of both stores; a function where it changes, as short-lived ones do. */
  token: string | (() => string)
  runsDir: string
  cacheDir: string
  allowPaths: readonly string[]
  /** Absolute paths that sandboxed engines may read besides the system's programs. Default: none. */
  sandboxBinds?: readonly string[]
  /** Variables of this process's environment that engines get: names, or prefixes followed by `*`. Default: none. */
  engineEnvironment?: readonly string[]
  log: WorkerLog
  /** Aborting it drains: takes no new Run, those that run may finish within `drainGraceMs`. */
  signal: AbortSignal
  /** Aborting it interrupts the Runs at once, the way their engines' makers intend. */
  interruptSignal?: AbortSignal
  /** Default: 600,000. */
  drainGraceMs?: number
  /** A worker that has had no Run for so long ends. Default: never; pools let go of theirs by themselves. */
  idleTimeoutMs?: number
  /** When a worker that is not `once` makes place for a fresh one: after so many Runs, or when it holds more memory between them. Default: never. */
  recycle?: { afterRuns?: number; aboveMemoryBytes?: number }
  lease?: Partial<LeaseTimings>
  version?: string
  /** For tests: where a Run's lines go. Default: the log store at `storeUrl`. */
  openLog?(run: Run): RunLog
  /** Gets a look at how the worker is, for its health endpoints. */
  onHealth?(health: () => WorkerHealth): void
}

const watchWorkerAfterMs = 1_000

/**
 * A worker, from its registration to its end: heartbeat, supervisor, Runs. Resolves with one of {@link workerExitCodes}; never rejects
 * for what can happen to a worker.
 */
export async function runWorker(options: RunWorkerOptions): Promise<{ exitCode: number }> {
  const timings = checkLeaseTimings({ ...defaultLeaseTimings, ...options.lease })
  return await new WorkerProcess(options, timings).run()
}

class WorkerProcess {
  readonly #options: RunWorkerOptions
  readonly #timings: LeaseTimings
  readonly #supervisor: SupervisorClient
  readonly #heartbeat: Heartbeat
  readonly #store: Agent
  readonly #stop = new AbortController()
  /** Runs that were given to us and have not been begun, by key. */
  readonly #given = new Map<string, Run>()
  readonly #begun = new Set<string>()
  /** By uid of the Run; the execution is there once its module is loaded. */
  readonly #running = new Map<string, { key: string; execution: Execution | undefined; done: Promise<void> }>()
  /** Set once: a Run begun later is stopped for the same reason. */
  #stopAll: StopCause | undefined
  #drainReason: DrainReason | undefined
  /** While it drains only since its object says so, and no Run was interrupted for it: ends that. */
  #undrain: (() => void) | undefined
  #isGone = false
  #isSupervisorLost = false
  #isRegistered = false
  #exitCode: number = workerExitCodes.ok
  #crash: unknown
  #idleSinceMs = performance.now()
  #idleSinceWallMs = Date.now()
  /** As of the last renewal of the Lease, where it changes. */
  #credential: string | undefined
  /** Versions of the engines as they were said; undefined while nothing was. */
  #engines: WorkerActivity['engines']
  #isolation: WorkerActivity['isolation']
  /** Keys of the sources it has worked with. */
  #caches: readonly string[] = []
  readonly #voice: WorkerStatusReporter
  #wake: () => void = () => {}

  constructor(options: RunWorkerOptions, timings: LeaseTimings) {
    this.#options = options
    this.#timings = timings
    const {
      client,
      token,
      caCertificate,
      name,
      pool,
      once,
      slots = 1,
      capabilities = noCapabilities,
      version,
      cacheDir,
      runsDir,
      log,
    } = options
    this.#engines = capabilities.engines
    this.#supervisor = new SupervisorClient({
      times: timings,
      renewedAtMs: bootMs(),
      cacheDir,
      runsDir,
      onSocket: path => this.#heartbeat.useSupervisor(path),
      onLost: () => {
        this.#isSupervisorLost = true
        this.#stopRuns({ kind: 'SupervisorLost' })
        this.#wake()
      },
    })
    this.#heartbeat = new Heartbeat({
      token,
      caCertificate,
      worker: this.#supervisor.worker,
      client,
      name,
      pool,
      once,
      slots,
      capabilities,
      version,
      timings,
      // The stores come next: while dispatch looks for a Run.
      onRegistered: () => prewarmStoreConnection(this.#store, options.storeUrl),
      onRenewed: atMs => {
        this.#supervisor.renewed(atMs)
        this.#renewCredential()
        for (const { execution } of this.#running.values()) execution?.renewed()
      },
      onLeaseLost: () => {
        log.warn({ worker: name }, 'the Lease was taken away: somebody decided that this worker is dead')
        this.#isGone = true
        this.#stopRuns({ kind: 'OwnershipLost', detail: "the worker's Lease was taken away" })
        this.#wake()
      },
      onError: error =>
        log.warn({ worker: name, error: String((error as Error)?.message ?? error) }, 'the API did not answer as it should'),
    })
    this.#store = createStoreAgent(options.storeUrl, caCertificate)
    this.#voice = new WorkerStatusReporter(
      () => this.#does(),
      status => this.#heartbeat.reportStatus(status),
      error => log.warn({ worker: name, error: String(error) }, 'could not say what it does'),
    )
    options.onHealth?.(() => this.#health())
  }

  async run(): Promise<{ exitCode: number }> {
    const { log, name, signal, interruptSignal } = this.#options
    // Beside the registration, but behind it: what a Run needs, and the watch that brings it, should be there when the worker is ready.
    const registering = this.#heartbeat.start()
    const watchingRuns = this.#watchRuns()
    import('./run/index.ts').catch(() => {})
    try {
      await registering
    } catch (error) {
      this.#stop.abort()
      this.#store.destroy()
      if (!(error instanceof RegistrationError)) throw error
      log.warn({ worker: name, error: error.message }, 'could not register')
      this.#supervisor.close()
      await this.#heartbeat.deregister()
      await watchingRuns
      return { exitCode: error.isRefused ? workerExitCodes.accessDenied : workerExitCodes.notRegistered }
    }
    this.#isRegistered = true
    void this.#sayIsolation()
    void this.#sayEngines()
    this.#idles()
    const onDrain = () => void this.#drain('Signal')
    const onInterrupt = () => this.#stopRuns({ kind: 'WorkerDrained' })
    signal.addEventListener('abort', onDrain, { once: true })
    interruptSignal?.addEventListener('abort', onInterrupt, { once: true })
    if (signal.aborted) onDrain()
    if (interruptSignal?.aborted) onInterrupt()
    const watchingWorker = this.#watchWorker()
    try {
      await this.#live()
    } finally {
      signal.removeEventListener('abort', onDrain)
      interruptSignal?.removeEventListener('abort', onInterrupt)
      this.#stop.abort()
      this.#supervisor.close()
      await this.#voice.close()
      await this.#heartbeat.deregister()
      await Promise.all([watchingRuns, watchingWorker])
      this.#store.destroy()
    }
    return { exitCode: this.#exitCode }
  }

  /** A Run may go on for longer than a short-lived credential: the supervisor is to have one that holds. */
  #renewCredential(): void {
    const { token } = this.#options
    if (typeof token === 'string') return
    const present = token()
    if (this.#credential !== undefined && this.#credential !== present) this.#supervisor.renewCredential(present)
    this.#credential = present
  }

  /** Which isolation it can give, where nobody told it: Runs that need another than Process come only then. */
  async #sayIsolation(): Promise<void> {
    const { capabilities, log, name } = this.#options
    if (capabilities?.isolation !== undefined) return
    try {
      const { availableIsolationLevels } = await import('../workspace/index.ts')
      this.#isolation = await availableIsolationLevels()
      await this.#voice.report()
    } catch (error) {
      log.warn({ worker: name, error: String(error) }, 'could not find out which isolation it can give')
    }
  }

  /** What a Run found is said where something else was said before: the next Runs are placed by it. */
  #foundEngine(engine: string, version: string | undefined): void {
    if (!this.#engines || this.#engines[engine] === (version ?? null)) return
    this.#engines = { ...this.#engines, [engine]: version ?? null }
    void this.#voice.report()
  }

  /**
   * Which engines it has, where nobody told it: found out while it works, by a worker that stays. One that takes a single Run
   * leaves the time that costs to the Run, which looks for its own engine only.
   */
  async #sayEngines(): Promise<void> {
    const { once, capabilities, log, name } = this.#options
    if (once || capabilities === undefined || capabilities.engines !== undefined) return
    try {
      const { detectEngines } = await import('../engine/index.ts')
      this.#engines = engineVersions(await detectEngines(process.env))
      await this.#voice.report()
    } catch (error) {
      log.warn({ worker: name, error: String(error) }, 'could not find out which engines it has')
    }
  }

  /** Takes Runs until {@link decideStep} says that it is over. */
  async #live(): Promise<void> {
    const { once, slots = 1, idleTimeoutMs = Number.POSITIVE_INFINITY, recycle = {} } = this.#options
    let hasLooked = false
    for (;;) {
      // An idle worker has nothing to stop, but from here on it counts as dead.
      const leaseLeftMs = this.#timings.durationMs - (bootMs() - this.#heartbeat.renewedAtMs)
      const idleMs = performance.now() - this.#idleSinceMs
      const step = decideStep({
        lifecycle: once ? 'OneShot' : 'Warm',
        slots,
        started: this.#begun.size,
        running: this.#running.size,
        assigned: this.#given.size,
        isDraining: this.#drainReason !== undefined,
        isFenced: this.#isGone || this.#isSupervisorLost || this.#crash !== undefined || leaseLeftMs <= 0,
        idleMs,
        idleTimeoutMs,
        recycleAfterRuns: recycle.afterRuns ?? Number.POSITIVE_INFINITY,
        memoryBytes: process.memoryUsage.rss(),
        recycleAboveBytes: recycle.aboveMemoryBytes ?? Number.POSITIVE_INFINITY,
      })
      if (step.kind === 'exitFenced') {
        if (this.#crash !== undefined) throw this.#crash
        this.#exitCode = workerExitCodes.fenced
        return
      }
      if (step.kind === 'exit') {
        // Dispatch gives no Run to a worker that drains, or that had its own. One that it gave just before is found here.
        const mayHaveMore = this.#drainReason !== undefined && !(once && this.#begun.size >= slots)
        if (!mayHaveMore || hasLooked) return
        hasLooked = true
        await this.#takeGiven()
        continue
      }
      hasLooked = false
      if (step.kind === 'drain') await this.#drain(step.reason)
      else if (step.kind === 'start') this.#begin()
      else await this.#sleep(Math.max(0, Math.min(this.#running.size > 0 ? Infinity : idleTimeoutMs - idleMs, Math.max(leaseLeftMs, 50))))
    }
  }

  async #sleep(ms: number): Promise<void> {
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, Math.min(ms, 2 ** 31 - 1))
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #begin(): void {
    const [run] = this.#given.values()
    if (!run) return
    const { uid } = run.metadata
    const key = objectKey(run)
    this.#given.delete(key)
    this.#begun.add(uid)
    this.#rememberSource(run)
    const entry = { key, execution: undefined as Execution | undefined, done: Promise.resolve() }
    this.#running.set(uid, entry)
    const end = (thrown?: unknown) => {
      if (thrown !== undefined) {
        this.#crash ??= thrown
        // The engines of the others end as their makers intend before this process does.
        this.#stopRuns({ kind: 'WorkerDrained' })
      }
      this.#running.delete(uid)
      if (this.#running.size === 0) this.#idles()
      this.#voice.schedule()
      this.#wake()
    }
    entry.done = this.#work(run, entry).then(() => end(), end)
    this.#voice.schedule()
  }

  #idles(): void {
    this.#idleSinceMs = performance.now()
    this.#idleSinceWallMs = Date.now()
  }

  async #work(run: Run, entry: { execution: Execution | undefined }): Promise<void> {
    const {
      client,
      name,
      storeUrl,
      caCertificate,
      token,
      runsDir,
      cacheDir,
      allowPaths,
      sandboxBinds = [],
      engineEnvironment = [],
      log,
    } = this.#options
    const key = objectKey(run)
    const { executeRun } = await import('./run/index.ts')
    await this.#supervisor.ready
    log.info({ worker: name, run: key, type: run.spec.type }, 'begins')
    const runLog = this.#options.openLog?.(run) ?? (await this.#openLog(run))
    const execution = executeRun({
      client,
      run,
      workerName: name,
      storeUrl,
      caCertificate,
      storeAgent: this.#store,
      token,
      runsDir,
      cacheDir,
      allowPaths,
      sandboxBinds,
      engineEnvironment,
      times: this.#timings,
      sinceRenewalMs: () => bootMs() - this.#heartbeat.renewedAtMs,
      supervisor: this.#supervisor,
      log: runLog,
      onEngine: (engine, version) => this.#foundEngine(engine, version),
    })
    entry.execution = execution
    if (this.#stopAll) execution.stop(this.#stopAll)
    const result = await execution.done
    log.info({ worker: name, run: key, result }, 'ends')
    if (result !== 'abandoned') return
    // Somebody thinks otherwise about what is ours: no further Run, and the others may finish.
    this.#exitCode = workerExitCodes.fenced
    void this.#drain('Fenced')
  }

  async #openLog(run: Run): Promise<RunLog> {
    const { openRunLog } = await import('./run/index.ts')
    const { name, log } = this.#options
    return openRunLog({
      ...this.#options,
      storeAgent: this.#store,
      run,
      onError: error => log.warn({ worker: name, error: error.message }, 'the log could not be sent'),
    })
  }

  async #takeGiven(): Promise<void> {
    const fieldSelector = `spec.workerName=${this.#options.name}`
    const runs = await this.#options.client
      .resource(runResource)
      .listAll({ fieldSelector })
      .catch(() => undefined)
    for (const run of runs?.items ?? []) this.#onRun(run)
  }

  async #drain(reason: DrainReason, { mayTurnBack = false } = {}): Promise<void> {
    if (!mayTurnBack) this.#undrain = undefined
    if (this.#drainReason !== undefined) return
    this.#drainReason = reason
    const { drainGraceMs = 600_000, log, name } = this.#options
    log.info({ worker: name, reason, runs: this.#running.size }, 'drains')
    const timer = setTimeout(() => this.#stopRuns({ kind: 'WorkerDrained' }), Math.min(drainGraceMs, 2 ** 31 - 1)).unref()
    if (mayTurnBack) this.#undrain = () => clearTimeout(timer)
    await this.#voice.report()
    this.#wake()
  }

  /** It was told to drain, and now it is not any more. No Run is given to it before it has said so. */
  #turnBack(): void {
    if (!this.#undrain || this.#stopAll) return
    this.#undrain()
    this.#undrain = undefined
    this.#drainReason = undefined
    this.#options.log.info({ worker: this.#options.name, runs: this.#running.size }, 'takes Runs again')
    this.#voice.schedule()
    this.#wake()
  }

  /** The newest last; a worker that ends with its Run need not say it. */
  #rememberSource({ spec }: Run): void {
    const key = this.#options.once ? undefined : cacheKey(spec.stack)
    if (key !== undefined) this.#caches = [...this.#caches.filter(other => other !== key), key].slice(-maxCacheKeys)
  }

  #stopRuns(cause: StopCause): void {
    this.#stopAll ??= cause
    for (const { execution } of this.#running.values()) execution?.stop(cause)
  }

  #does(): WorkerActivity {
    const runs = [...this.#running.values()].map(({ key }) => key)
    return {
      runs,
      idleSinceMs: runs.length > 0 ? undefined : this.#idleSinceWallMs,
      draining: this.#drainReason,
      caches: this.#caches,
      engines: this.#engines,
      isolation: this.#isolation,
    }
  }

  #health(): WorkerHealth {
    return decideHealth({
      isRegistered: this.#isRegistered,
      sinceRenewalMs: bootMs() - this.#heartbeat.renewedAtMs,
      timings: this.#timings,
      drainReason: this.#drainReason,
      supervisor: this.#isSupervisorLost ? 'lost' : this.#supervisor.pid === undefined ? 'away' : 'answers',
    })
  }

  #onRun(run: Run): void {
    const { uid } = run.metadata
    const running = this.#running.get(uid)
    if (running) running.execution?.observe(run)
    else if (this.#mayBegin(run)) {
      this.#given.set(objectKey(run), run)
      this.#wake()
    } else this.#given.delete(objectKey(run))
  }

  #mayBegin(run: Run): boolean {
    const phase = run.status?.phase ?? 'Queued'
    const { uid, deletionTimestamp } = run.metadata
    const isMine = run.spec.workerName === this.#options.name && !this.#begun.has(uid)
    return isMine && !deletionTimestamp && (phase === 'Queued' || phase === 'Assigned')
  }

  #onRunGone(run: Run): void {
    this.#given.delete(objectKey(run))
    // With a field selector this also means that spec.workerName is no longer this worker.
    this.#running.get(run.metadata.uid)?.execution?.stop({ kind: 'OwnershipLost', detail: 'it was deleted or given to another worker' })
  }

  async #watchRuns(): Promise<void> {
    const { client, name, log } = this.#options
    await listWatch(client, runResource, {
      fieldSelector: `spec.workerName=${name}`,
      signal: this.#stop.signal,
      onReplace: runs => {
        const here = new Set(runs.map(run => run.metadata.uid))
        for (const run of this.#given.values()) if (!here.has(run.metadata.uid)) this.#onRunGone(run)
        for (const [uid, { execution }] of this.#running)
          if (!here.has(uid)) execution?.stop({ kind: 'OwnershipLost', detail: 'it was deleted or given to another worker' })
        for (const run of runs) this.#onRun(run)
      },
      onEvent: ({ type, object }) => {
        if (type === 'DELETED') this.#onRunGone(object)
        else if (type === 'ADDED' || type === 'MODIFIED') this.#onRun(object)
      },
      // A server that does not let the worker in says so to its registration.
      onError: error => this.#isRegistered && log.warn({ worker: name, error: (error as Error).message }, 'the watch of Runs broke'),
      backoff: { minMs: 200, maxMs: 2_000 },
    })
  }

  async #watchWorker(): Promise<void> {
    const { client, name, log } = this.#options
    // A little later: the first Run may be here in a moment, and the watch begins with what was said meanwhile.
    await delay(watchWorkerAfterMs, undefined, { signal: this.#stop.signal }).catch(() => {})
    const look = (worker: Worker): void => {
      if (worker.spec.drain) void this.#drain('DrainRequested', { mayTurnBack: true })
      else this.#turnBack()
    }
    await listWatch(client, workerResource, {
      fieldSelector: `metadata.name=${name}`,
      signal: this.#stop.signal,
      onReplace: workers => workers.forEach(look),
      onEvent: ({ type, object }) => {
        if (type === 'ADDED' || type === 'MODIFIED') look(object)
        // Without it no Run is given to this process any more: it would wait for nothing.
        else if (type === 'DELETED') void this.#drain('DrainRequested')
      },
      onError: error => log.warn({ worker: name, error: (error as Error).message }, 'the watch of the Worker broke'),
    })
  }
}
