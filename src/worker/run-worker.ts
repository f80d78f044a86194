import { type Run, runResource, type Worker, workerResource } from '../api/index.ts'
import { type Client, listWatch } from '../client/index.ts'
import { objectKey } from '../kube/index.ts'
import type { Execution } from './execute-run.ts'
import { workerExitCodes } from './exit-codes.ts'
import { bootMs, Guard } from './guard/index.ts'
import { Heartbeat, RegisterError } from './heartbeat.ts'
import { checkLeaseTimings, defaultLeaseTimings, type LeaseTimings } from './lease-timings.ts'
import type { RunLog } from './run-log.ts'

/** As much of a logger as a worker needs. */
export type WorkerLog = {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export type RunWorkerOptions = {
  name: string
  pool: string
  /** True: takes one Run and ends. False: takes one after the other. */
  once: boolean
  client: Client
  /** Where state and logs are kept, such as `https://127.0.0.1:7466`. */
  storeUrl: string
  caCertificate: string | undefined
  token: string
  runsDir: string
  cacheDir: string
  allowPaths: readonly string[]
  /** Absolute paths that sandboxed engines may read besides the system's programs. Default: none. */
  sandboxBinds?: readonly string[]
  log: WorkerLog
  /** Aborting it drains: takes no new Run, the one that runs may finish within `drainGraceMs`. */
  signal: AbortSignal
  /** Aborting it interrupts the Run at once, the way its engine's makers intend. */
  interruptSignal?: AbortSignal
  /** Default: 600,000. */
  drainGraceMs?: number
  /** A one-shot worker that is given no Run for so long ends. Default: 60,000. */
  idleTimeoutMs?: number
  lease?: Partial<LeaseTimings>
  version?: string
  /** For tests: where a Run's lines go. Default: the log store at `storeUrl`. */
  openLog?(run: Run): RunLog
}

/**
 * A worker, from its registration to its end: heartbeat, guard, Runs. Resolves with one of {@link workerExitCodes}; never rejects
 * for what can happen to a worker.
 */
export async function runWorker(options: RunWorkerOptions): Promise<{ exitCode: number }> {
  const timings = checkLeaseTimings({ ...defaultLeaseTimings, ...options.lease })
  return await new WorkerProcess(options, timings).run()
}

/** What a worker waits for: a Run, or the end. */
type Wake = { kind: 'run'; run: Run } | { kind: 'idle' } | { kind: 'drain' } | { kind: 'fenced' }

class WorkerProcess {
  readonly #options: RunWorkerOptions
  readonly #timings: LeaseTimings
  readonly #guard: Guard
  readonly #heartbeat: Heartbeat
  readonly #stop = new AbortController()
  /** Runs that were given to us and have not been begun, by key. */
  readonly #given = new Map<string, Run>()
  readonly #begun = new Set<string>()
  #execution: { uid: string; execution: Execution } | undefined
  #isDraining = false
  #isGone = false
  #isGuardLost = false
  #wake: () => void = () => {}

  constructor(options: RunWorkerOptions, timings: LeaseTimings) {
    this.#options = options
    this.#timings = timings
    const { client, token, caCertificate, name, pool, once, version, cacheDir, runsDir, log } = options
    this.#guard = new Guard({
      times: timings,
      renewedAtMs: bootMs(),
      cacheDir,
      runsDir,
      onSocket: path => this.#heartbeat.useGuard(path),
      onLost: () => {
        this.#isGuardLost = true
        this.#execution?.execution.stop({ kind: 'GuardLost' })
        this.#wake()
      },
    })
    this.#heartbeat = new Heartbeat({
      client,
      token,
      caCertificate,
      worker: this.#guard.worker,
      name,
      pool,
      once,
      version,
      timings,
      onRenewed: atMs => {
        this.#guard.renewed(atMs)
        this.#execution?.execution.renewed()
      },
      onGone: () => {
        log.warn({ worker: name }, 'the Lease was taken away: somebody decided that this worker is dead')
        this.#isGone = true
        this.#execution?.execution.stop({ kind: 'NotOurs', why: "the worker's Lease was taken away" })
        this.#wake()
      },
      onError: error =>
        log.warn({ worker: name, error: String((error as Error)?.message ?? error) }, 'the API did not answer as it should'),
    })
  }

  async run(): Promise<{ exitCode: number }> {
    const { log, name, once, signal, interruptSignal } = this.#options
    // Loaded while the API is asked: what a Run needs should be there when it comes.
    const loading = import('./execute-run.ts')
    loading.catch(() => {})
    const ready = this.#guard.ready.then(
      () => undefined,
      error => error as Error,
    )
    try {
      await this.#heartbeat.start()
    } catch (error) {
      if (!(error instanceof RegisterError)) throw error
      log.warn({ worker: name, error: error.message }, 'could not register')
      this.#guard.goodbye()
      await this.#heartbeat.end()
      return { exitCode: workerExitCodes.notRegistered }
    }
    const onDrain = () => void this.#drain()
    const onInterrupt = () => this.#execution?.execution.stop({ kind: 'WorkerDrained' })
    signal.addEventListener('abort', onDrain, { once: true })
    interruptSignal?.addEventListener('abort', onInterrupt, { once: true })
    if (signal.aborted) onDrain()
    const watching = Promise.all([this.#watchRuns(), this.#watchWorker()])
    let exitCode: number = workerExitCodes.ok
    try {
      for (;;) {
        const wake = await this.#next()
        if (wake.kind === 'fenced') exitCode = workerExitCodes.fenced
        if (wake.kind !== 'run') break
        const guardError = await ready
        if (guardError) throw guardError
        exitCode = await this.#work(wake.run, await loading)
        if (exitCode !== workerExitCodes.ok || once) break
        if (!this.#isDraining) await this.#say('Ready', [])
      }
    } finally {
      signal.removeEventListener('abort', onDrain)
      interruptSignal?.removeEventListener('abort', onInterrupt)
      this.#stop.abort()
      this.#guard.goodbye()
      await this.#heartbeat.end()
      await watching
    }
    return { exitCode }
  }

  async #work(run: Run, { executeRun }: typeof import('./execute-run.ts')): Promise<number> {
    const { client, name, storeUrl, caCertificate, token, runsDir, cacheDir, allowPaths, sandboxBinds = [], log } = this.#options
    const key = objectKey(run)
    this.#given.delete(key)
    this.#begun.add(run.metadata.uid)
    log.info({ worker: name, run: key, type: run.spec.type }, 'begins')
    const runLog = this.#options.openLog?.(run) ?? (await this.#openLog(run))
    const execution = executeRun({
      client,
      run,
      workerName: name,
      storeUrl,
      caCertificate,
      token,
      runsDir,
      cacheDir,
      allowPaths,
      sandboxBinds,
      times: this.#timings,
      sinceRenewalMs: () => bootMs() - this.#heartbeat.renewedAtMs,
      guard: this.#guard,
      log: runLog,
    })
    this.#execution = { uid: run.metadata.uid, execution }
    if (this.#options.interruptSignal?.aborted) execution.stop({ kind: 'WorkerDrained' })
    if (this.#isGone) execution.stop({ kind: 'NotOurs', why: "the worker's Lease was taken away" })
    const saying = this.#say(this.#isDraining ? 'Draining' : 'Busy', [key])
    try {
      const result = await execution.done
      log.info({ worker: name, run: key, result }, 'ends')
      if (result === 'reported') return workerExitCodes.ok
      return result === 'unsaved' ? workerExitCodes.ok : workerExitCodes.fenced
    } finally {
      this.#execution = undefined
      await saying
    }
  }

  async #openLog(run: Run): Promise<RunLog> {
    const { openRunLog } = await import('./open-run-log.ts')
    const { name, log } = this.#options
    return openRunLog({
      ...this.#options,
      run,
      onError: error => log.warn({ worker: name, error: error.message }, 'the log could not be sent'),
    })
  }

  /** Waits for a Run that was given to us, or for a reason to end. */
  async #next(): Promise<Wake> {
    const { once, idleTimeoutMs = 60_000 } = this.#options
    const idleAtMs = once ? performance.now() + idleTimeoutMs : Number.POSITIVE_INFINITY
    for (;;) {
      if (this.#isGone || this.#isGuardLost) return { kind: 'fenced' }
      const leaseLeftMs = this.#timings.durationMs - (bootMs() - this.#heartbeat.renewedAtMs)
      // An idle worker has nothing to stop, but from here on it counts as dead.
      if (leaseLeftMs <= 0) return { kind: 'fenced' }
      const [run] = this.#given.values()
      if (run) return { kind: 'run', run }
      if (this.#isDraining) return { kind: 'drain' }
      const idleLeftMs = idleAtMs - performance.now()
      if (idleLeftMs <= 0) {
        // Announced first: dispatch gives no Run to a worker that drains. One that it gave before comes through the watch, or is found here.
        await this.#drain()
        await this.#takeGiven()
        if (this.#given.size === 0) return { kind: 'idle' }
        continue
      }
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, Math.min(idleLeftMs, leaseLeftMs))
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  async #takeGiven(): Promise<void> {
    const fieldSelector = `spec.workerName=${this.#options.name}`
    const runs = await this.#options.client
      .resource(runResource)
      .listAll({ fieldSelector })
      .catch(() => undefined)
    for (const run of runs?.items ?? []) this.#onRun(run)
  }

  async #drain(): Promise<void> {
    if (this.#isDraining) return
    this.#isDraining = true
    const { drainGraceMs = 600_000 } = this.#options
    setTimeout(() => this.#execution?.execution.stop({ kind: 'WorkerDrained' }), drainGraceMs).unref()
    await this.#say('Draining')
    this.#wake()
  }

  async #say(phase: 'Ready' | 'Busy' | 'Draining', runs?: string[]): Promise<void> {
    const { log, name } = this.#options
    await this.#heartbeat
      .say({ phase, runs })
      .catch(error => log.warn({ worker: name, error: String(error) }, 'could not say what it does'))
  }

  #onRun(run: Run): void {
    const { uid } = run.metadata
    if (this.#execution?.uid === uid) this.#execution.execution.observe(run)
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
    if (this.#execution?.uid === run.metadata.uid) {
      // With a field selector this also means that spec.workerName is no longer this worker.
      this.#execution.execution.stop({ kind: 'NotOurs', why: 'it was deleted or given to another worker' })
    }
  }

  async #watchRuns(): Promise<void> {
    const { client, name, log } = this.#options
    await listWatch(client, runResource, {
      fieldSelector: `spec.workerName=${name}`,
      signal: this.#stop.signal,
      onReplace: runs => {
        const here = new Set(runs.map(run => run.metadata.uid))
        for (const run of this.#given.values()) if (!here.has(run.metadata.uid)) this.#onRunGone(run)
        const { uid } = this.#execution ?? {}
        if (uid && !here.has(uid)) this.#execution?.execution.stop({ kind: 'NotOurs', why: 'it was deleted or given to another worker' })
        for (const run of runs) this.#onRun(run)
      },
      onEvent: ({ type, object }) => {
        if (type === 'DELETED') this.#onRunGone(object)
        else if (type === 'ADDED' || type === 'MODIFIED') this.#onRun(object)
      },
      onError: error => log.warn({ worker: name, error: (error as Error).message }, 'the watch of Runs broke'),
      backoff: { minMs: 200, maxMs: 2_000 },
    })
  }

  async #watchWorker(): Promise<void> {
    const { client, name, log } = this.#options
    const look = (worker: Worker): void => {
      if (worker.spec.drain) void this.#drain()
    }
    await listWatch(client, workerResource, {
      fieldSelector: `metadata.name=${name}`,
      signal: this.#stop.signal,
      onReplace: workers => workers.forEach(look),
      onEvent: ({ type, object }) => {
        if (type === 'ADDED' || type === 'MODIFIED') look(object)
      },
      onError: error => log.warn({ worker: name, error: (error as Error).message }, 'the watch of the Worker broke'),
    })
  }
}
