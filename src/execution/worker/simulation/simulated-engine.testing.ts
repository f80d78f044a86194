import { type HostServices, messageMs } from './host-services.testing.ts'
import { SimulatedProcess } from './simulated-process.testing.ts'

export type SimulatedEngineOptions = {
  readonly uid: string
  readonly worker: string
  /** It ends this long after SIGINT; undefined: only by SIGKILL. */
  readonly stopMs: number | undefined
  /** It ends without a signal after this time. */
  readonly runMs: number
  /** Called in the worker. */
  onEnd(engine: SimulatedEngine): void
}

/** An engine's process group. */
export class SimulatedEngine {
  readonly uid: string
  readonly worker: string
  readonly group: number
  readonly process: SimulatedProcess
  interrupts = 0
  readonly #host: Pick<HostServices, 'time' | 'report'>
  readonly #options: SimulatedEngineOptions

  constructor(host: Pick<HostServices, 'time' | 'report'>, group: number, options: SimulatedEngineOptions) {
    this.uid = options.uid
    this.worker = options.worker
    this.group = group
    this.process = new SimulatedProcess(host.time)
    this.#host = host
    this.#options = options
    if (options.runMs !== Number.POSITIVE_INFINITY) this.process.after(options.runMs, () => this.#end('ends'))
  }

  get isAlive(): boolean {
    return this.process.isAlive
  }

  signal(signal: NodeJS.Signals, sender: string): void {
    if (!this.isAlive) return
    if (signal === 'SIGKILL') {
      // The kernel ends it, even if it is stopped.
      this.#end(`is killed by ${sender}`)
      return
    }
    if (signal === 'SIGINT') this.interrupts++
    this.#host.report(`engine of ${this.uid} gets ${signal} from ${sender}`)
    const { stopMs } = this.#options
    if (stopMs !== undefined && signal === 'SIGINT') this.process.after(stopMs, () => this.#end('ends, interrupted'))
  }

  #end(how: string): void {
    if (!this.isAlive) return
    this.process.kill()
    this.#host.report(`engine of ${this.uid} ${how}`)
    this.#host.time.after(messageMs, () => this.#options.onEnd(this))
  }
}
