import { isWorkersInterrupt } from '../lease/decide-fence.ts'
import { decideRenewal, type RenewalEvent } from '../lease/decide-renewal.ts'
import { type FenceTimer, startFenceTimer } from '../lease/fence-timer.ts'
import { defaultLeaseTimings } from '../lease/lease-timings.ts'
import { RunStopper } from '../run/run-stopper.ts'
import { forbidsWrites, type StopCause } from '../run/stop-cause.ts'
import { protocolVersion, type SupervisorReply, type WorkerIdentity } from '../supervisor/supervisor-protocol.ts'
import { type SessionAction, type SessionEvent, SupervisorSession } from '../supervisor/supervisor-session.ts'
import type { HostServices } from './host-services.testing.ts'
import type { SimulatedLeases } from './simulated-cluster.testing.ts'
import type { SimulatedEngine, SimulatedEngineOptions } from './simulated-engine.testing.ts'
import { SimulatedProcess } from './simulated-process.testing.ts'
import type { SimulatedConnection, SimulatedSupervisor } from './simulated-supervisor.testing.ts'

const timings = defaultLeaseTimings
const stuckMs = 120_000
/** How often the main thread records that it runs, and checks whether to exit. */
const progressMs = 1_000
/** Saves the last state and reports the result in this time. */
const reportMs = 20

export type WorkerHost = HostServices & {
  readonly leases: SimulatedLeases
  /** The current supervisor for a version of the protocol. */
  supervisor(protocol: number): SimulatedSupervisor | undefined
  /** What `connectToSupervisor` does. Calls back in the worker. */
  connect(worker: SimulatedProcess, protocol: number, onConnected: (supervisor: SimulatedSupervisor) => void): void
  startEngine(options: SimulatedEngineOptions): SimulatedEngine
  /** A worker that exits deletes its Worker and its Lease, if the server responds. */
  deregister(name: string): void
}

export type SimulatedRunOptions = { stopMs?: number | undefined; runMs?: number; timeoutMs?: number }

type ActiveRun = {
  readonly uid: string
  readonly options: SimulatedRunOptions
  readonly stopper: RunStopper
  fence: FenceTimer
  engine: SimulatedEngine | undefined
  isInterruptedBySupervisor: boolean
}

/** A worker's process: the main thread with the fences of its Runs and its connection to the supervisor, and the thread that renews its Lease. */
export class SimulatedWorker extends SimulatedProcess {
  readonly name: string
  /** Stops the process between the fork of its next engine and the report of it. */
  isPausedBeforeReport = false
  readonly pid: number
  readonly #identity: WorkerIdentity
  readonly #host: WorkerHost
  readonly #heartbeat: SimulatedProcess
  readonly #main: SimulatedProcess
  readonly #session: SupervisorSession
  readonly #protocol: number
  readonly #runs = new Map<string, ActiveRun>()
  #connection: SimulatedConnection | undefined
  #heartbeatConnection: SimulatedConnection | undefined
  #renewedAtMs: number
  #aliveAtMs: number
  #isLost = false
  #isPaused = false
  #isBlocked = false

  constructor(host: WorkerHost, name: string, number: number, protocol = protocolVersion) {
    super(host.time)
    this.#host = host
    this.name = name
    this.pid = 100 + number
    this.#protocol = protocol
    this.#main = new SimulatedProcess(host.time)
    this.#heartbeat = new SimulatedProcess(host.time)
    this.#renewedAtMs = host.nowMs()
    this.#aliveAtMs = host.nowMs()
    this.#identity = { id: name, pid: this.pid, startTime: '1' }
    this.#session = new SupervisorSession({ worker: this.#identity, times: timings, runsDir: '/runs', renewedAtMs: host.nowMs() })
    this.#connect()
    host.leases.create(name, name)
    host.report(`worker ${name} registers`)
    void this.#renew()
    this.#recordProgress()
  }

  /** Whether its supervisor is the current one and would act if this worker could not. */
  get isSupervised(): boolean {
    const supervisor = this.#host.supervisor(this.#protocol)
    return supervisor?.isRunning === true && this.#session.pid === supervisor.pid
  }

  get isBusy(): boolean {
    return this.#runs.size > 0
  }

  get runUids(): string[] {
    return [...this.#runs.keys()]
  }

  /** It exits without another Run. */
  get isFenced(): boolean {
    return this.#isLost || this.#host.nowMs() - this.#renewedAtMs >= timings.durationMs
  }

  override get isAlive(): boolean {
    return this.#main.isAlive
  }

  override get isRunning(): boolean {
    return this.#main.isRunning
  }

  override pause(): void {
    this.#isPaused = true
    this.#apply()
  }

  override resume(): void {
    this.#isPaused = false
    this.#apply()
  }

  /** The main thread's event loop is blocked; the heartbeat's thread runs. */
  block(isBlocked: boolean): void {
    this.#isBlocked = isBlocked
    this.#apply()
  }

  #apply(): void {
    if (this.#isPaused) this.#heartbeat.pause()
    else this.#heartbeat.resume()
    if (this.#isPaused || this.#isBlocked) this.#main.pause()
    else this.#main.resume()
  }

  override kill(how = 'is killed'): void {
    if (!this.isAlive) return
    this.#main.kill()
    this.#heartbeat.kill()
    this.#host.report(`worker ${this.name} ${how}`)
    this.#connection?.end()
    this.#heartbeatConnection?.end()
    this.#host.onExit(this)
  }

  sendGarbage(): void {
    this.#connection?.sendGarbage()
  }

  /** The supervisor sends what is no message: the worker closes the connection, as `onJsonLines` requires. */
  receiveGarbage(): void {
    this.#host.reportMessage(`  ${this.name} receives garbage, closes the connection`)
    this.#connection?.end()
    this.#connection = undefined
    this.#step({ kind: 'disconnected' })
  }

  start(uid: string, options: SimulatedRunOptions): void {
    const { time } = this.#host
    const endsByMs = time.nowMs() + (options.timeoutMs ?? Number.POSITIVE_INFINITY)
    const report = (kind: 'interrupted') => this.#step({ kind: 'report', message: { kind, uid } })
    const stopper = new RunStopper({
      onInterrupt: () => report('interrupted'),
      mayInterrupt: () =>
        isWorkersInterrupt(time.nowMs() - this.#renewedAtMs, timings) && time.nowMs() < endsByMs && !run.isInterruptedBySupervisor,
      signalGroup: (group, signal) => this.#host.signal([group], signal, this.name),
      after: this.#main.after,
    })
    const run: ActiveRun = {
      uid,
      options,
      stopper,
      engine: undefined,
      isInterruptedBySupervisor: false,
      fence: { update: () => {}, stop: () => {} },
    }
    this.#runs.set(uid, run)
    run.fence = startFenceTimer({
      times: timings,
      sinceRenewalMs: () => time.nowMs() - this.#renewedAtMs,
      onStep: step => stopper.fence(step),
      timers: this.#main,
    })
    // What the process runner does.
    stopper.signal.onabort = () => {
      if (run.engine) stopper.interruptGroup(run.engine.group)
      else this.#onEngineEnd(run)
    }
    this.#host.directories.set(uid, { uid, owners: new Set([this]), holders: new Set([this]) })
    this.#step({
      kind: 'supervise',
      run: { uid, directory: `/runs/${uid}`, salvage: undefined, ...(options.timeoutMs !== undefined && { endsByMs }) },
    })
  }

  cancel(uid: string): void {
    this.#runs.get(uid)?.stopper.stop({ kind: 'Canceled' })
  }

  /** SIGTERM without a Run, or its end. */
  exit(how: string): void {
    this.#step({ kind: 'close' })
    this.#host.deregister(this.name)
    this.kill(how)
  }

  #connect(): void {
    this.#host.connect(this.#main, this.#protocol, supervisor => {
      const onReply = (reply: SupervisorReply): void => {
        if (this.#connection === connection) this.#step({ kind: 'reply', reply })
      }
      const onClose = (): void => {
        if (this.#connection !== connection) return
        this.#connection = undefined
        this.#step({ kind: 'disconnected' })
      }
      const connection = supervisor.accept(this.#main, this.name, onReply, onClose)
      this.#connection = connection
      this.#step({ kind: 'connected' })
      this.#heartbeatConnection?.end()
      const onThreadClose = (): void => {
        if (this.#heartbeatConnection === ofThread) this.#heartbeatConnection = undefined
      }
      const ofThread = supervisor.accept(this.#heartbeat, `${this.name}'s heartbeat`, () => {}, onThreadClose)
      this.#heartbeatConnection = ofThread
    })
  }

  #step(event: SessionEvent): void {
    for (const action of this.#session.step(event, this.#host.nowMs())) this.#execute(action)
  }

  #execute(action: SessionAction): void {
    switch (action.kind) {
      case 'send':
        this.#connection?.send(action.message)
        return
      case 'connect':
        this.#connect()
        return
      case 'closeConnection':
        this.#connection?.end()
        this.#connection = undefined
        return
      case 'checkReply':
        this.#main.after(action.inMs, () => this.#step({ kind: 'checkReply' }))
        return
      case 'ready':
        return
      case 'runReply': {
        const run = this.#runs.get(action.reply.uid)
        if (run && action.reply.kind === 'armed') this.#startEngine(run)
        else if (run && action.reply.kind === 'interrupted') run.isInterruptedBySupervisor = true
        else if (run) this.#forget(run)
        return
      }
      case 'lost':
        this.#host.report(`worker ${this.name} has no supervisor`)
        this.#isLost = true
        this.#isLost = true
        this.#stopAll({ kind: 'SupervisorLost' })
        return
    }
  }

  #startEngine(run: ActiveRun): void {
    const { uid, options, stopper } = run
    if (run.engine || stopper.cause || this.#host.nowMs() - this.#renewedAtMs >= timings.interruptMs) return
    run.engine = this.#host.startEngine({
      ...{ uid, worker: this.name, stopMs: 'stopMs' in options ? options.stopMs : 500, runMs: options.runMs ?? Number.POSITIVE_INFINITY },
      onEnd: engine => this.#main.receive(() => this.#onEngineEnd(run, engine)),
    })
    const { group } = run.engine
    stopper.addGroup(group)
    if (this.isPausedBeforeReport) this.pause()
    this.isPausedBeforeReport = false
    this.#main.receive(() => this.#step({ kind: 'report', message: { kind: 'started', uid, processGroupId: group } }))
  }

  /** As `RunExecution`: reports the result while it may, else leaves the Run to the supervisor. */
  #onEngineEnd(run: ActiveRun, engine?: SimulatedEngine): void {
    const { uid, stopper } = run
    if (engine) {
      stopper.removeGroup(engine.group)
      this.#step({ kind: 'report', message: { kind: 'ended', uid, processGroupId: engine.group } })
    }
    if (forbidsWrites(stopper.cause) || stopper.writeSignal.aborted) {
      run.fence.stop()
      this.#step({ kind: 'report', message: { kind: 'abandoned', uid } })
      // It waits for the supervisor, but not for long.
      this.#main.after(5_000, () => this.#forget(run))
      return
    }
    this.#main.after(reportMs, () => {
      if (this.#host.leases.isCutOff) return this.#onEngineEnd(run)
      run.fence.stop()
      this.#host.removeDirectory(uid)
      this.#host.report(`worker ${this.name} reports the result of ${uid}${stopper.cause ? `: ${stopper.cause.kind}` : ''}`)
      this.#step({ kind: 'report', message: { kind: 'done', uid } })
      this.#forget(run)
    })
  }

  #forget(run: ActiveRun): void {
    run.fence.stop()
    this.#runs.delete(run.uid)
    this.#exitIfFenced()
  }

  #stopAll(cause: StopCause): void {
    for (const { stopper } of this.#runs.values()) stopper.stop(cause)
    this.#exitIfFenced()
  }

  #exitIfFenced(): void {
    if (this.isAlive && !this.isBusy && this.isFenced) this.exit('exits, fenced')
  }

  #recordProgress(): void {
    this.#aliveAtMs = this.#host.nowMs()
    this.#exitIfFenced()
    this.#main.after(progressMs, () => this.#recordProgress())
  }

  /** The shell of `heartbeat-thread.ts`. */
  async #renew(): Promise<void> {
    const { leases, nowMs } = this.#host
    const thread = this.#heartbeat
    let event: RenewalEvent = { kind: 'registered', sentAtMs: this.#renewedAtMs }
    for (;;) {
      const { renewedAtMs, error, next } = decideRenewal(event, nowMs(), { renewMs: timings.renewMs, stuckMs })
      if (renewedAtMs !== undefined) this.#onRenewed(renewedAtMs)
      if (error !== undefined) this.#host.reportRoutine(`worker ${this.name} cannot renew its Lease: ${error}`)
      if (next.kind === 'lost') {
        this.#main.receive(() => this.#onLeaseLost())
        return
      }
      if (next.kind === 'wait') {
        await thread.sleep(next.ms)
        event = { kind: 'due', aliveAtMs: this.#aliveAtMs }
      } else {
        const { sentAtMs } = next
        const applied = (): void => this.#host.reportRoutine(`Lease of ${this.name} is renewed`)
        event = await leases.renew(thread, this.name, this.name, timings.renewMs, applied).then(
          response => ({ kind: 'answered', sentAtMs, ...response }),
          (failure: Error) => ({ kind: 'failed', message: failure.message }),
        )
      }
    }
  }

  #onRenewed(atMs: number): void {
    this.#renewedAtMs = atMs
    this.#heartbeatConnection?.send({ kind: 'renewed', worker: this.#identity, atMs })
    this.#main.receive(() => {
      this.#step({ kind: 'renewed', atMs: this.#renewedAtMs })
      for (const { fence } of this.#runs.values()) fence.update()
    })
  }

  #onLeaseLost(): void {
    this.#host.report(`worker ${this.name} learns that its Lease was deleted`)
    this.#isLost = true
    this.#stopAll({ kind: 'OwnershipLost', detail: "the worker's Lease was deleted" })
  }
}
