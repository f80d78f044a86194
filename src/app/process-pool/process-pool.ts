/**
 * @module app/process-pool: worker processes on this machine. Start reading here; `local-pool.ts` opens and drains it.
 * In: names of workers to start and stop. Out: their processes, and how they ended. A process that outlived its parent is adopted (`orphan-workers.ts`).
 * Out of scope: which workers are started (`controllers/dispatch/`, `../pool/`), what they do (`execution/worker/`).
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { WorkerPool } from '../../api/index.ts'
import {
  crashOf,
  type DriverListener,
  type DriverWorker,
  type ExitFailure,
  type PoolDriver,
  workerEnvironment,
} from '../../controllers/dispatch/index.ts'
import { lowerPriority, niceValues } from '../../execution/workspace/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { makeDirectories, openFilesError } from '../../kubernetes/util/index.ts'
import { OomKills } from './oom-kills.ts'
import { findOrphanWorkers, isRunning, type OrphanWorker, signalOrphan } from './orphan-workers.ts'
import { lastErrorOf, linesOfWorker, tailOf } from './worker-output.ts'

export type ProcessPoolOptions = {
  /** Program and leading arguments that start a worker, such as Node and bin/oarlock.js; `worker …` is appended. */
  launcher: readonly string[]
  /** Server address and credential of a worker; the settings of the pool are added. */
  environmentOf(workerName: string, pool: WorkerPool): Promise<NodeJS.ProcessEnv>
  /** For the output of workers while it is useful. */
  outputDirectory: string
  log: Log
  /** For tests. Default: what the kernel counts. */
  oomKills?: OomKills
}

/** How many outputs of failed workers are kept, and how much of one is logged (invariant 10). */
const maxOutputs = 20
const maxLoggedBytes = 4_096

/** How often orphans, which are not children of this process, are checked. */
const orphanCheckMs = 250

type PooledProcess = { readonly pool: string; isEnding: boolean; kill(signal: NodeJS.Signals): void }

/**
 * Runs workers as child processes, each in its own session: a terminal's Ctrl-C reaches only this process, which lets them finish. They
 * outlive this process until their Lease expires. A restarted process adopts them, also those that have not registered, so that a pool
 * never exceeds its maximum.
 */
export class ProcessPool implements PoolDriver {
  readonly #options: ProcessPoolOptions
  readonly #workers = new Map<string, PooledProcess>()
  /** Those that an earlier process started. Their exits must be polled. */
  readonly #orphans: OrphanWorker[]
  readonly #orphanTimer: NodeJS.Timeout | undefined
  #listener: DriverListener | undefined
  #isClosed = false
  readonly #oomKills: OomKills
  #whenEmpty = Promise.withResolvers<void>()

  constructor(options: ProcessPoolOptions) {
    this.#options = options
    this.#oomKills = options.oomKills ?? new OomKills()
    makeDirectories(options.outputDirectory, 0o700)
    this.#orphans = findOrphanWorkers(options.outputDirectory)
    for (const worker of this.#orphans) {
      const { name, pool } = worker
      this.#workers.set(name, { pool, isEnding: false, kill: signal => signalOrphan(worker, signal) })
    }
    this.#oomKills.setWorkers(this.#workers.size)
    if (this.#orphans.length > 0) {
      options.log.info({ workers: this.#orphans.map(({ name }) => name) }, 'adopted workers of the previous process')
      this.#orphanTimer = setInterval(() => this.#checkOrphans(), orphanCheckMs).unref()
    }
    this.#removeOldOutputs()
  }

  /** Resolves when the process is running. @throws {Error} if it cannot be started, or the pool is draining. */
  async start(pool: WorkerPool, workerName: string): Promise<void> {
    if (this.#isClosed) throw new Error('the process pool is draining and starts no worker')
    const { environmentOf } = this.#options
    this.#workers.set(workerName, { pool: pool.metadata.name, isEnding: false, kill: () => {} })
    this.#oomKills.setWorkers(this.#workers.size)
    let environment: NodeJS.ProcessEnv
    try {
      environment = await environmentOf(workerName, pool)
      if (this.#isClosed) throw new Error('the process pool is draining and starts no worker')
    } catch (error) {
      this.#remove(workerName)
      throw error
    }
    try {
      await this.#spawn(pool, workerName, environment)
    } catch (error) {
      this.#remove(workerName)
      const reason = openFilesError(error)
      throw reason === undefined ? error : new Error(`cannot start a worker: ${reason}`, { cause: error })
    }
  }

  async #spawn(pool: WorkerPool, workerName: string, environment: NodeJS.ProcessEnv): Promise<void> {
    const { launcher, outputDirectory } = this.#options
    const [command = process.execPath, ...args] = launcher
    const path = join(outputDirectory, `${workerName}.log`)
    const output = openSync(path, 'a', 0o600)
    let child: ChildProcess
    try {
      child = spawn(command, [...args, 'worker', '--name', workerName, '--pool', pool.metadata.name], {
        // Starts a session. The output is a file instead of a pipe, so that a worker can write after this process has exited.
        detached: true,
        stdio: ['ignore', output, output],
        env: { ...environment, ...workerEnvironment(pool, workerName) },
      })
    } finally {
      closeSync(output)
    }
    const started = Promise.withResolvers<void>()
    child.once('spawn', () => started.resolve())
    child.once('error', error => started.reject(error))
    child.once('exit', (code, signal) => this.#exited(workerName, path, code, signal))
    this.#workers.set(workerName, { pool: pool.metadata.name, isEnding: false, kill: signal => child.kill(signal) })
    if (child.pid !== undefined) lowerPriority(child.pid, niceValues.worker)
    await started.promise
  }

  running(): readonly DriverWorker[] {
    return [...this.#workers].map(([name, { pool }]) => ({ name, pool }))
  }

  /** With `force` its Lease has expired, and its supervisor has ended its engines (invariant 2). */
  stop(workerName: string, { force }: { force: boolean }): void {
    const found = this.#workers.get(workerName)
    if (!found) return
    found.kill(force ? 'SIGKILL' : 'SIGTERM')
    found.isEnding = true
  }

  listen(listener: DriverListener): void {
    this.#listener = listener
  }

  /** Starts no further worker. Running workers finish their Runs and exit. */
  drain(): void {
    this.#isClosed = true
    this.#signal('SIGTERM')
  }

  /** Makes the workers interrupt their engines, so that they save their state and exit. */
  interrupt(): void {
    this.#isClosed = true
    this.#signal('SIGINT')
  }

  /** Resolves with true once no worker is running, or with false after `timeoutMs`. */
  async whenEmpty(timeoutMs: number): Promise<boolean> {
    if (this.#workers.size === 0) return true
    const timer = Promise.withResolvers<false>()
    const timeout = setTimeout(() => timer.resolve(false), timeoutMs)
    try {
      return await Promise.race([this.#whenEmpty.promise.then(() => true), timer.promise])
    } finally {
      clearTimeout(timeout)
    }
  }

  #signal(signal: NodeJS.Signals): void {
    for (const worker of this.#workers.values()) worker.kill(signal)
  }

  #exited(workerName: string, path: string, code: number | null, signal: NodeJS.Signals | null): void {
    const { log } = this.#options
    // A worker that is stopped before it handles signals ends by the signal, which is not a failure.
    let failure: ExitFailure | undefined
    const isExpected = this.#isClosed || this.#workers.get(workerName)?.isEnding === true
    if (code === 0 || (isExpected && signal !== null)) rmSync(path, { force: true })
    else {
      const output = linesOfWorker(tailOf(path, maxLoggedBytes))
      log.warn({ worker: workerName, code, signal, output }, 'worker process failed')
      const error = lastErrorOf(output)
      const outcome = `worker ${workerName} ${signal === null ? `exited with code ${code}` : `was ended by ${signal}`}`
      const crash = this.#crashOf(code, signal, isExpected)
      if (error !== undefined || crash) {
        const isOutOfMemory = crash === 'WorkerOutOfMemory'
        failure = {
          message: error === undefined ? outcome : `${outcome}: ${error}`,
          // Without its output, which only an administrator of this machine may read.
          ...(crash && {
            crash: { reason: crash, message: `${outcome}${isOutOfMemory ? ' while the kernel ended processes for lack of memory' : ''}` },
          }),
        }
      }
      this.#removeOldOutputs()
    }
    this.#remove(workerName)
    this.#listener?.exited(workerName, code ?? undefined, failure)
  }

  #crashOf(code: number | null, signal: NodeJS.Signals | null, isStopped: boolean) {
    const hasOomKill = this.#oomKills.mayHaveKilledWorker()
    return crashOf({ exitCode: code ?? undefined, signal: signal ?? undefined, isStopped, hasOomKill })
  }

  #checkOrphans(): void {
    const { outputDirectory, log } = this.#options
    for (const worker of this.#orphans.filter(each => !isRunning(each))) {
      const { name } = worker
      this.#orphans.splice(this.#orphans.indexOf(worker), 1)
      log.info({ worker: name }, 'worker of the previous process exited')
      rmSync(join(outputDirectory, `${name}.log`), { force: true })
      this.#remove(name)
      // The exit code of an orphan is unknown. Only one that had not registered has certainly failed.
      const message = `worker ${name}, started by the previous oarlock process, exited before it registered`
      this.#listener?.exited(name, 0, { reason: 'CrashedOnStartup', message })
    }
    if (this.#orphans.length === 0) clearInterval(this.#orphanTimer)
  }

  #remove(workerName: string): void {
    this.#workers.delete(workerName)
    this.#oomKills.setWorkers(this.#workers.size)
    if (this.#workers.size > 0) return
    this.#whenEmpty.resolve()
    this.#whenEmpty = Promise.withResolvers()
  }

  #removeOldOutputs(): void {
    const { outputDirectory } = this.#options
    const files = filesIn(outputDirectory)
      .filter(name => !this.#workers.has(name.replace(/\.log$/, '')))
      .map(name => ({ path: join(outputDirectory, name), changedMs: modifiedMs(join(outputDirectory, name)) }))
      .sort((a, b) => b.changedMs - a.changedMs)
    for (const { path } of files.slice(maxOutputs)) rmSync(path, { force: true })
  }
}

/** Empty if the directory was removed. */
function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

function modifiedMs(path: string): number {
  try {
    return statSync(path).mtimeMs
  } catch {
    return 0
  }
}
