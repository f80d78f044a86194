import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'oarlock.js')

export type InstallationOptions = {
  /** Holds the data directories, configurations and logs; kept. */
  readonly directory: string
  /** Names of the partitions of Tenants, and of those of Workers and Nodes. */
  readonly tenantPartitions: readonly string[]
  readonly resourcePartitions: readonly string[]
  /** Address on which all servers listen. Default 127.0.0.1. */
  readonly host?: string
  /** Port of the gateway. Default 7471. */
  readonly gatewayPort?: number
}

/** How a process has ended that was not ended by {@link RoleChild.end}. */
export type RoleExit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

/** A process of `oarlock`, whose output is in `<directory>/logs/<name>.log`. */
export class RoleChild {
  readonly name: string
  readonly #logFile: string
  readonly #args: readonly string[]
  readonly #directory: string
  readonly #env: Readonly<Record<string, string>>
  #child: ChildProcess
  /** Where the output of the present process begins: an earlier one may have written to the same file. */
  #from = 0
  #isEnding = false
  #onExit: ((exit: RoleExit) => void) | undefined

  constructor(name: string, directory: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.#env = env
    this.name = name
    this.#directory = directory
    this.#args = args
    mkdirSync(join(directory, 'logs'), { recursive: true })
    this.#logFile = join(directory, 'logs', `${name}.log`)
    this.#child = this.#spawn()
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** What it has printed since its last start. */
  output(): string {
    return readFileSync(this.#logFile, 'utf8').slice(this.#from)
  }

  /** The value of a line that it printed at its start, such as `API`. */
  printed(line: string): string {
    return new RegExp(`^ *${line} +(\\S+)`, 'm').exec(this.output())?.[1] ?? ''
  }

  /** Waits until its output matches. @throws {Error} with its output, if it exits first or takes too long. */
  async until(pattern: RegExp, timeoutMs = 60_000): Promise<void> {
    const deadlineMs = Date.now() + timeoutMs
    while (!pattern.test(this.output())) {
      if (!this.isRunning) throw new Error(`${this.name} exited before it was ready:\n${this.output()}`)
      if (Date.now() > deadlineMs) throw new Error(`${this.name} was not ready within ${timeoutMs / 1_000} s:\n${this.output()}`)
      await sleep(50)
    }
  }

  /** Sets the only listener for ends that {@link end} did not cause. */
  onExit(listener: (exit: RoleExit) => void): void {
    this.#onExit = listener
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Ends it with the signal, and waits for that. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#isEnding = true
    if (!this.isRunning) return
    const ended = once(this.#child, 'exit')
    this.#child.kill(signal)
    // A stopped process handles SIGTERM only after it was continued.
    this.#child.kill('SIGCONT')
    await ended
  }

  restart(): void {
    if (this.isRunning) throw new Error(`${this.name} is running`)
    this.#child = this.#spawn()
  }

  #spawn(): ChildProcess {
    this.#isEnding = false
    this.#from = existsSync(this.#logFile) ? readFileSync(this.#logFile, 'utf8').length : 0
    const log = openSync(this.#logFile, 'a')
    const env = { ...process.env, NO_COLOR: '1', ...this.#env }
    const child = spawn(process.execPath, [launcher, ...this.#args], { cwd: this.#directory, stdio: ['ignore', log, log], env })
    closeSync(log)
    child.once('exit', (code, signal) => {
      if (!this.#isEnding) this.#onExit?.({ code, signal })
    })
    return child
  }
}

/** Home, further partitions and a gateway on this machine, each a process of its own. */
export class Installation {
  readonly directory: string
  /** Of the administrator, through the gateway. */
  readonly kubeconfig: string
  readonly #roles = new Map<string, RoleChild>()
  readonly #options: InstallationOptions

  private constructor(options: InstallationOptions) {
    this.#options = options
    this.directory = resolve(options.directory)
    this.kubeconfig = join(this.directory, 'gateway.kubeconfig')
    process.once('exit', this.#killAll)
  }

  /** Starts all servers and waits until they serve and have copied what home has. */
  static async start(options: InstallationOptions): Promise<Installation> {
    const it = new Installation(options)
    try {
      await it.#start()
      return it
    } catch (error) {
      await it.stop()
      throw error
    }
  }

  /** `home`, the name of a partition, `gateway`, or a role that was added. */
  role(name: string): RoleChild {
    const found = this.#roles.get(name)
    if (!found) throw new Error(`${name} was not started`)
    return found
  }

  get roles(): Iterable<RoleChild> {
    return this.#roles.values()
  }

  /** Of the administrator of one partition, past the gateway. */
  partitionKubeconfig(name: string): string {
    return join(this.directory, name, 'kubeconfig')
  }

  /** Starts another role; the caller waits until it is ready. */
  add(name: string, args: readonly string[], env?: Readonly<Record<string, string>>): RoleChild {
    const role = new RoleChild(name, this.directory, args, env)
    this.#roles.set(name, role)
    return role
  }

  /** Runs a command of `oarlock` to its end. @returns what it printed. @throws {Error} with that, if it fails. */
  async run(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(process.execPath, [launcher, ...args], { cwd: this.directory, encoding: 'utf8' })
    return stdout
  }

  /** Ends all processes in reverse order. */
  async stop(): Promise<void> {
    for (const role of [...this.#roles.values()].reverse()) await role.end()
    process.off('exit', this.#killAll)
  }

  async #start(): Promise<void> {
    const { tenantPartitions, resourcePartitions, host = '127.0.0.1', gatewayPort = 7471 } = this.#options
    mkdirSync(this.directory, { recursive: true, mode: 0o700 })
    const listen = ['--listen', `${host}:0`]
    await this.add('home', ['serve', '--home', '--data', 'home', ...listen]).until(/^ready: /m)
    const partitions = [
      ...tenantPartitions.map(name => [name, 'Tenants'] as const),
      ...resourcePartitions.map(name => [name, 'Resources'] as const),
    ]
    for (const [name, roles] of partitions) await this.run('partition', 'add', name, '--roles', roles, '--data', 'home')
    const children = partitions.map(([name]) =>
      this.add(name, ['serve', '--partition', `${name}.partition.json`, '--data', name, ...listen]),
    )
    await Promise.all(children.map(child => child.until(/^ready: /m)))
    const server = `https://${host}:${gatewayPort}`
    await this.run(
      'partition',
      'add-gateway',
      '--data',
      'home',
      '--server',
      server,
      '--to',
      'gateway.json',
      '--kubeconfig-to',
      this.kubeconfig,
    )
    await this.add('gateway', ['gateway', '--config', 'gateway.json', '--listen', `${host}:${gatewayPort}`]).until(/^ready: /m)
  }

  readonly #killAll = () => {
    for (const role of this.#roles.values()) role.signal('SIGKILL')
  }
}
