import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { WorkerPool } from '../api/index.ts'
import { type DriverListener, type DriverWorker, type PoolDriver, workerEnvironment } from '../controllers/dispatch/index.ts'
import type { Log } from '../kubernetes/controller/index.ts'
import { findOrphanWorkers, isRunning, type OrphanWorker, signalOrphan } from './orphan-workers.ts'

export type ProcessPoolOptions = {
  /** The program that starts a worker, such as Node and bin/oarlock.js; `worker …` is added. */
  launcher: readonly string[]
  /** Where the server is, and a credential; how the pool wants its workers is added. */
  environmentOf(workerName: string, pool: WorkerPool): NodeJS.ProcessEnv
  /** Where what a worker prints is kept while it is of use. */
  outputDirectory: string
  log: Log
}

/** Outputs of workers that failed: the newest are kept, by number and by how much of each is read (invariant 10). */
const keptOutputs = 20
const shownBytes = 4_096

/** How often workers are looked after that are no children of this process. */
const lookEveryMs = 250

type OwnWorker = { readonly pool: string; isEnding: boolean; kill(signal: NodeJS.Signals): void }

/**
 * Workers as child processes, each in a session of its own: a terminal's Ctrl-C reaches this process only, which then lets them
 * finish. They outlive this process for as long as their Lease lets them, and one that starts again takes them on: also those that had
 * not registered, so that there are never more than a pool may have.
 */
export class ProcessPool implements PoolDriver {
  readonly #options: ProcessPoolOptions
  readonly #workers = new Map<string, OwnWorker>()
  /** Of those, the ones that an earlier process started: their ends have to be looked for. */
  readonly #left: OrphanWorker[]
  readonly #looking: NodeJS.Timeout | undefined
  #listener: DriverListener | undefined
  #isClosed = false
  #whenEmpty = Promise.withResolvers<void>()

  constructor(options: ProcessPoolOptions) {
    this.#options = options
    mkdirSync(options.outputDirectory, { recursive: true, mode: 0o700 })
    this.#left = findOrphanWorkers(options.outputDirectory)
    for (const worker of this.#left) {
      const { name, pool } = worker
      this.#workers.set(name, { pool, isEnding: false, kill: signal => signalOrphan(worker, signal) })
    }
    if (this.#left.length > 0) {
      options.log.info({ workers: this.#left.map(({ name }) => name) }, 'workers of before go on')
      this.#looking = setInterval(() => this.#lookForEnds(), lookEveryMs).unref()
    }
    this.#forgetOldOutputs()
  }

  /** Resolves when the process runs. @throws {Error} when it cannot be started, or when the pool is closed. */
  async start(pool: WorkerPool, workerName: string): Promise<void> {
    if (this.#isClosed) throw new Error('this process stops and starts no more workers')
    const { launcher, environmentOf, outputDirectory } = this.#options
    const [command = process.execPath, ...args] = launcher
    const path = join(outputDirectory, `${workerName}.log`)
    const output = openSync(path, 'a', 0o600)
    let child: ChildProcess
    try {
      child = spawn(command, [...args, 'worker', '--name', workerName, '--pool', pool.metadata.name], {
        // A session of its own. A file, not a pipe: a worker that writes when we are gone must not die of it.
        detached: true,
        stdio: ['ignore', output, output],
        env: { ...environmentOf(workerName, pool), ...workerEnvironment(pool, workerName) },
      })
    } finally {
      closeSync(output)
    }
    const started = Promise.withResolvers<void>()
    child.once('spawn', () => started.resolve())
    child.once('error', error => started.reject(error))
    child.once('exit', (code, signal) => this.#exited(workerName, path, code, signal))
    this.#workers.set(workerName, { pool: pool.metadata.name, isEnding: false, kill: signal => child.kill(signal) })
    try {
      await started.promise
    } catch (error) {
      this.#remove(workerName)
      throw error
    }
  }

  running(): readonly DriverWorker[] {
    return [...this.#workers].map(([name, { pool }]) => ({ name, pool }))
  }

  /** With `force` its Lease has ended, and its supervisor has ended its engines (invariant 2). */
  stop(workerName: string, { force }: { force: boolean }): void {
    const found = this.#workers.get(workerName)
    if (!found) return
    found.kill(force ? 'SIGKILL' : 'SIGTERM')
    found.isEnding = true
  }

  listen(listener: DriverListener): void {
    this.#listener = listener
  }

  /** From now on no worker is started; those that run are asked to finish their Run and exit. */
  drain(): void {
    this.#isClosed = true
    this.#signal('SIGTERM')
  }

  /** Asks the workers to interrupt their engines now, in the way that saves state. */
  interrupt(): void {
    this.#isClosed = true
    this.#signal('SIGINT')
  }

  /** True when no worker runs any more; false after `timeoutMs`. */
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
    // One that is told to stop before it listens for that ends by the signal: no failure.
    const isAsked = this.#isClosed || this.#workers.get(workerName)?.isEnding === true
    if (code === 0 || (isAsked && signal !== null)) rmSync(path, { force: true })
    else {
      log.warn({ worker: workerName, code, signal, output: tailOf(path) }, 'a worker process failed')
      this.#forgetOldOutputs()
    }
    this.#remove(workerName)
    this.#listener?.exited(workerName, code ?? undefined)
  }

  #lookForEnds(): void {
    const { outputDirectory, log } = this.#options
    for (const worker of this.#left.filter(each => !isRunning(each))) {
      const { name } = worker
      this.#left.splice(this.#left.indexOf(worker), 1)
      log.info({ worker: name }, 'a worker of before has ended')
      rmSync(join(outputDirectory, `${name}.log`), { force: true })
      this.#remove(name)
      // Nobody knows how: only one that had not registered has failed for sure.
      const message = `worker ${name}, which was started before oarlock was started again, ended before it registered`
      this.#listener?.exited(name, 0, { reason: 'CrashedOnStartup', message })
    }
    if (this.#left.length === 0) clearInterval(this.#looking)
  }

  #remove(workerName: string): void {
    this.#workers.delete(workerName)
    if (this.#workers.size > 0) return
    this.#whenEmpty.resolve()
    this.#whenEmpty = Promise.withResolvers()
  }

  #forgetOldOutputs(): void {
    const { outputDirectory } = this.#options
    const files = namesIn(outputDirectory)
      .filter(name => !this.#workers.has(name.replace(/\.log$/, '')))
      .map(name => ({ path: join(outputDirectory, name), changedMs: modifiedMs(join(outputDirectory, name)) }))
      .sort((a, b) => b.changedMs - a.changedMs)
    for (const { path } of files.slice(keptOutputs)) rmSync(path, { force: true })
  }
}

/** None where somebody has removed it. */
function namesIn(directory: string): string[] {
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

function tailOf(path: string): string {
  try {
    return readFileSync(path).subarray(-shownBytes).toString('utf8').trim()
  } catch {
    return ''
  }
}
