import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Settings } from './settings.ts'
import type { FromOperator, Report, Synced, ToOperator } from './stats.ts'

export type ServerProcess = { pid: number; kubeconfigPath: string; stop(): Promise<void> }

/** Starts the embedded server on a temporary data directory, which is removed at the end. */
export async function startServerProcess(flags: string[]): Promise<ServerProcess> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-kyma-'))
  const child = spawn(process.execPath, [...flags, join(import.meta.dirname, 'server.ts'), dataDir], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const [line] = (await Promise.race([
    once((child.stdout as NodeJS.ReadableStream).setEncoding('utf8'), 'data'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the server ended with ${code} before it was ready`))),
  ])) as [string]
  return {
    pid: child.pid as number,
    kubeconfigPath: line.trim(),
    stop: async () => {
      const ended = child.exitCode === null ? once(child, 'exit') : undefined
      child.kill('SIGTERM')
      await ended
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** An operator process and its last report. */
export class OperatorProcess {
  readonly #child: ChildProcess
  readonly #synced = Promise.withResolvers<Synced>()
  readonly #listeners = new Set<(message: FromOperator) => void>()
  #isEnding = false
  report: Report | undefined

  constructor(child: ChildProcess) {
    this.#child = child
    child.on('message', (message: FromOperator) => {
      if (message.type === 'report') this.report = message
      if (message.type === 'synced') this.#synced.resolve(message)
      for (const listener of this.#listeners) listener(message)
    })
    child.on('exit', (code, signal) => {
      if (this.#isEnding) return
      console.error(`the operator exited unexpectedly with ${signal ?? code}`)
      process.exit(1)
    })
  }

  /** Resolves when all its caches are filled. */
  get synced(): Promise<Synced> {
    return this.#synced.promise
  }

  until(holds: (report: Report) => boolean): Promise<void> {
    if (this.report && holds(this.report)) return Promise.resolve()
    return this.#when(message => message.type === 'report' && holds(message)).then(() => undefined)
  }

  nextReport(): Promise<void> {
    return this.#when(message => message.type === 'report').then(() => undefined)
  }

  async resync(): Promise<number> {
    const done = this.#when(message => message.type === 'resynced')
    this.#child.send({ type: 'resync' } satisfies ToOperator)
    return ((await done) as { seconds: number }).seconds
  }

  /** Simulates a crash. */
  async kill(): Promise<void> {
    await this.#end(() => this.#child.kill('SIGKILL'))
  }

  async stop(): Promise<void> {
    await this.#end(() => this.#child.send({ type: 'stop' } satisfies ToOperator))
  }

  async #end(ask: () => void): Promise<void> {
    if (this.#isEnding || this.#child.exitCode !== null) return
    this.#isEnding = true
    const ended = once(this.#child, 'exit')
    ask()
    await ended
  }

  #when(holds: (message: FromOperator) => boolean): Promise<FromOperator> {
    return new Promise(resolve => {
      const listener = (message: FromOperator) => {
        if (!holds(message)) return
        this.#listeners.delete(listener)
        resolve(message)
      }
      this.#listeners.add(listener)
    })
  }
}

export function startOperator(settings: Settings, flags: string[]): OperatorProcess {
  const child = fork(join(import.meta.dirname, 'operator.ts'), [JSON.stringify(settings)], { execArgv: flags })
  return new OperatorProcess(child)
}
