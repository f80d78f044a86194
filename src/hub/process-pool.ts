import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { WorkerPool } from '../api/index.ts'
import type { Log } from '../controller/index.ts'
import { type DrivenWorker, type DriverListener, type PoolDriver, workerEnvironment } from '../dispatch/index.ts'

export type ProcessPoolOptions = {
  /** The program that starts a worker, such as Node and bin/oarlock; `worker …` is added. */
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

/**
 * Workers as child processes, each in a session of its own: a terminal's Ctrl-C reaches this process only, which then lets them
 * finish. They outlive this process for as long as their Lease lets them, so that one that starts again finds them at work; it
 * does not adopt them, their Leases say how they are.
 */
export class ProcessPool implements PoolDriver {
  readonly #options: ProcessPoolOptions
  readonly #children = new Map<string, { child: ChildProcess; pool: string; isEnding: boolean }>()
  #listener: DriverListener | undefined
  #isClosed = false
  #whenEmpty = Promise.withResolvers<void>()

  constructor(options: ProcessPoolOptions) {
    this.#options = options
    mkdirSync(options.outputDirectory, { recursive: true, mode: 0o700 })
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
    this.#children.set(workerName, { child, pool: pool.metadata.name, isEnding: false })
    try {
      await started.promise
    } catch (error) {
      this.#remove(workerName)
      throw error
    }
  }

  running(): readonly DrivenWorker[] {
    return [...this.#children].map(([name, { pool }]) => ({ name, pool }))
  }

  /** With `force` its Lease has ended, and its guard has ended its engines (invariant 2). */
  end(workerName: string, { force }: { force: boolean }): void {
    const found = this.#children.get(workerName)
    if (!found) return
    found.child.kill(force ? 'SIGKILL' : 'SIGTERM')
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
    if (this.#children.size === 0) return true
    const timer = Promise.withResolvers<false>()
    const timeout = setTimeout(() => timer.resolve(false), timeoutMs)
    try {
      return await Promise.race([this.#whenEmpty.promise.then(() => true), timer.promise])
    } finally {
      clearTimeout(timeout)
    }
  }

  #signal(signal: NodeJS.Signals): void {
    for (const { child } of this.#children.values()) child.kill(signal)
  }

  #exited(workerName: string, path: string, code: number | null, signal: NodeJS.Signals | null): void {
    const { log } = this.#options
    // One that is told to stop before it listens for that ends by the signal: no failure.
    const isAsked = this.#isClosed || this.#children.get(workerName)?.isEnding === true
    if (code === 0 || (isAsked && signal !== null)) rmSync(path, { force: true })
    else {
      log.warn({ worker: workerName, code, signal, output: tailOf(path) }, 'a worker process failed')
      this.#forgetOldOutputs()
    }
    this.#remove(workerName)
    this.#listener?.exited(workerName, code ?? undefined)
  }

  #remove(workerName: string): void {
    this.#children.delete(workerName)
    if (this.#children.size > 0) return
    this.#whenEmpty.resolve()
    this.#whenEmpty = Promise.withResolvers()
  }

  #forgetOldOutputs(): void {
    const { outputDirectory } = this.#options
    const files = readdirSync(outputDirectory)
      .filter(name => !this.#children.has(name.replace(/\.log$/, '')))
      .map(name => ({ path: join(outputDirectory, name), changedMs: modifiedMs(join(outputDirectory, name)) }))
      .sort((a, b) => b.changedMs - a.changedMs)
    for (const { path } of files.slice(keptOutputs)) rmSync(path, { force: true })
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
