import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Settings } from './settings.ts'
import { type FromOperator, type Report, type Synced, sumReports, type ToOperator } from './stats.ts'

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

/** One replica of the operator and its last report. */
class OperatorProcess {
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

  /** Calls `listener` after each report; returns a function that ends that. */
  onReport(listener: () => void): () => void {
    const onMessage = ({ type }: FromOperator) => void (type === 'report' && listener())
    this.#listeners.add(onMessage)
    return () => this.#listeners.delete(onMessage)
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

/** The replicas of the operator, as if they were one. */
export class Operator {
  readonly #settings: Settings
  readonly #flags: string[]
  readonly #replicas: OperatorProcess[]
  /** Last reports of replicas that were killed. */
  readonly #ended: Report[] = []

  constructor(settings: Settings, flags: string[], replicas: number) {
    this.#settings = settings
    this.#flags = flags
    this.#replicas = Array.from({ length: replicas }, (_, index) => this.#start(index, replicas))
  }

  /** Resolves when the caches of all replicas are filled, with the time of the slowest. */
  get synced(): Promise<Synced> {
    return Promise.all(this.#replicas.map(({ synced }) => synced)).then(all => ({
      type: 'synced',
      seconds: Math.max(...all.map(({ seconds }) => seconds)),
      objects: all.reduce((sum, { objects }) => sum + objects, 0),
    }))
  }

  /** The sum over the replicas; of what has happened, also of those that were killed. Undefined until each has reported. */
  get report(): Report | undefined {
    const present = this.#replicas.map(({ report }) => report)
    return present.includes(undefined) ? undefined : sumReports(present as Report[], this.#ended)
  }

  /** Resident memory of each replica. */
  get rssMb(): number[] {
    return this.#replicas.map(({ report }) => report?.rssMb ?? Number.NaN)
  }

  until(holds: (report: Report) => boolean): Promise<void> {
    return new Promise(resolve => {
      const check = () => {
        const { report } = this
        if (!report || !holds(report)) return
        for (const end of ends) end()
        resolve()
      }
      const ends = this.#replicas.map(replica => replica.onReport(check))
      check()
    })
  }

  async nextReport(): Promise<void> {
    await Promise.all(this.#replicas.map(replica => replica.nextReport()))
  }

  async resync(): Promise<number> {
    return Math.max(...(await Promise.all(this.#replicas.map(replica => replica.resync()))))
  }

  /** Kills one replica with SIGKILL and starts another one; returns the seconds until its caches are filled. */
  async restartOne(): Promise<number> {
    const [killed] = this.#replicas
    await killed?.kill()
    if (killed?.report) this.#ended.push(killed.report)
    const next = this.#start(0, this.#replicas.length)
    this.#replicas[0] = next
    return (await next.synced).seconds
  }

  async stop(): Promise<void> {
    await Promise.all(this.#replicas.map(replica => replica.stop()))
  }

  #start(index: number, replicas: number): OperatorProcess {
    const shards = replicas > 1 ? { identity: `kyma-operator-${index}`, slots: replicas } : undefined
    const settings = JSON.stringify({ ...this.#settings, shards })
    return new OperatorProcess(fork(join(import.meta.dirname, 'operator.ts'), [settings], { execArgv: this.#flags }))
  }
}
