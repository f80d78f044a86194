import { TranscriptLines } from '../../../../test/support/transcripts.ts'
import { VirtualClock } from '../../../../test/support/virtual-clock.ts'
import { protocolVersion } from '../supervisor/supervisor-protocol.ts'
import { messageMs, type SimulatedDirectory } from './host-services.testing.ts'
import { SimulatedLeases, SimulatedObserver } from './simulated-cluster.testing.ts'
import { SimulatedEngine, type SimulatedEngineOptions } from './simulated-engine.testing.ts'
import type { SimulatedProcess } from './simulated-process.testing.ts'
import { SimulatedSupervisor, type SupervisorHost } from './simulated-supervisor.testing.ts'
import { SimulatedWorker, type WorkerHost } from './simulated-worker.testing.ts'

/** From the start of a supervisor until it listens. */
const supervisorStartMs = 100
/** A supervisor that does not reply for this long is not used. */
const replyTimeoutMs = 3_000
const reaperMs = 10

/**
 * One host with workers, supervisors and engines, the API server, and dispatch's observer, on virtual time. What decides is the real code: the
 * renewal of the Lease, the fence, the supervisor's side and the worker's side of their protocol, the observer of Leases.
 *
 * It checks at every instant that no engine of a worker that was declared lost may run (invariant 2), and that none gets a second SIGINT.
 */
export class SimulatedHost implements SupervisorHost, WorkerHost {
  readonly time = new VirtualClock()
  readonly lines = new TranscriptLines(() => this.time.nowMs())
  readonly leases: SimulatedLeases
  readonly observer: SimulatedObserver
  readonly workers = new Map<string, SimulatedWorker>()
  readonly supervisors: SimulatedSupervisor[] = []
  readonly engines: SimulatedEngine[] = []
  readonly directories = new Map<string, SimulatedDirectory>()
  readonly lost = new Set<string>()
  /** Everything was stopped together: nothing could enforce a deadline meanwhile. */
  isUnsafe = false
  readonly #showsMessages: boolean
  #violation: string | undefined
  readonly #starting = new Set<number>()

  constructor(options: { showsMessages: boolean }) {
    this.#showsMessages = options.showsMessages
    this.leases = new SimulatedLeases(this.time, (name, version) => this.observer.notify(name, version))
    this.observer = new SimulatedObserver(this.time, this.leases, name => {
      this.lost.add(name)
      this.report(`dispatch: worker ${name} is lost`)
    })
  }

  nowMs = (): number => this.time.nowMs()

  report(text: string): void {
    this.lines.add(text)
    this.#check()
  }

  reportRoutine(text: string): void {
    this.lines.addRoutine(text)
  }

  reportMessage(text: string, isRoutine = false): void {
    if (!this.#showsMessages) return
    if (isRoutine) this.lines.addRoutine(text)
    else this.lines.add(text)
  }

  /** Advances time from event to event, and checks at each. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.time.nowMs() + ms
    do {
      await this.time.advance(Math.min(untilMs, this.time.nextMs ?? untilMs) - this.time.nowMs())
      this.#check()
      if (this.#violation !== undefined) throw new Error(this.#violation)
    } while (this.time.nowMs() < untilMs)
  }

  /** Not thrown here: this may be called inside a listener. */
  #check(): void {
    for (const { uid, worker, isAlive, interrupts } of this.engines) {
      if (interrupts > 1) this.#violation ??= `engine of ${uid} got a second SIGINT at ${this.nowMs()} ms`
      const isLate = isAlive && this.lost.has(worker) && !this.isUnsafe
      if (isLate) this.#violation ??= `invariant 2: the engine of ${uid} runs at ${this.nowMs()} ms, and its worker was declared lost`
    }
  }

  addWorker(name: string, protocol?: number): SimulatedWorker {
    const worker = new SimulatedWorker(this, name, this.workers.size + 1, protocol)
    this.workers.set(name, worker)
    return worker
  }

  deregister(name: string): void {
    if (this.leases.isCutOff) return
    this.observer.forget(name)
    this.leases.delete(name)
  }

  workerOf(pid: number): SimulatedWorker | undefined {
    return [...this.workers.values()].find(worker => worker.pid === pid)
  }

  startEngine(options: SimulatedEngineOptions): SimulatedEngine {
    const engine = new SimulatedEngine(this, this.engines.length + 1, options)
    this.engines.push(engine)
    this.report(`engine of ${options.uid} starts`)
    return engine
  }

  signal(groups: Iterable<number>, signal: NodeJS.Signals, sender: string): void {
    for (const group of groups) this.engines[group - 1]?.signal(signal, sender)
  }

  killRun(uid: string, sender: string): void {
    for (const engine of this.engines) if (engine.uid === uid) engine.signal('SIGKILL', sender)
  }

  supervisor(protocol: number): SimulatedSupervisor | undefined {
    return this.supervisors.findLast(each => each.protocol === protocol)
  }

  connect(worker: SimulatedProcess, protocol: number, onConnected: (supervisor: SimulatedSupervisor) => void): void {
    const retry = (ms: number): void => void worker.after(ms, () => this.connect(worker, protocol, onConnected))
    const found = this.supervisor(protocol)
    if (found?.isRunning) {
      worker.after(messageMs, () => (found.isRunning ? onConnected(found) : retry(0)))
      return
    }
    if (found?.isAlive && !found.isSilent) {
      // The kernel accepts the connection, and the supervisor does not reply.
      worker.after(replyTimeoutMs, () => {
        found.isSilent = !found.isRunning
        retry(0)
      })
      return
    }
    if (!this.#starting.has(protocol)) {
      this.#starting.add(protocol)
      this.time.after(supervisorStartMs, () => {
        this.#starting.delete(protocol)
        const next = new SimulatedSupervisor(this, this.supervisors.length + 1, protocol)
        this.supervisors.push(next)
        this.report(`${next.name} listens${protocol === protocolVersion ? '' : ` for protocol ${protocol}`}`)
      })
    }
    retry(20)
  }

  /** A reaper holds nothing itself: it kills the Run when worker and supervisor, which hold its pipe, have exited. */
  onExit(process: SimulatedProcess): void {
    for (const directory of this.directories.values()) {
      directory.owners.delete(process)
      if (!directory.holders.delete(process) || directory.holders.size > 0) continue
      this.time.after(reaperMs, () => directory.holders.size === 0 && this.killRun(directory.uid, 'reaper'))
    }
  }

  removeDirectory(uid: string): void {
    this.directories.delete(uid)
  }
}
