import { type SupervisedWorkerPart, SupervisedWorkers, type SupervisorParts } from '../supervisor/supervised-workers.ts'
import { Supervision, type SupervisionAction, type SupervisionEvent } from '../supervisor/supervision.ts'
import type { SupervisorMessage, SupervisorReply } from '../supervisor/supervisor-protocol.ts'
import { formatMessage } from './format-message.testing.ts'
import { type HostServices, messageMs } from './host-services.testing.ts'
import { SimulatedProcess } from './simulated-process.testing.ts'

/** Starts a reaper, saves a state and removes a directory in this time. */
const armMs = 5
const cleanUpMs = 50
const exitCheckMs = 20

export type SupervisorHost = HostServices & {
  /** By process group, from 1 on. */
  readonly engines: readonly { readonly isAlive: boolean }[]
  workerOf(pid: number): { kill(how: string): void } | undefined
}

/** What a worker sees of a connection to a supervisor. */
export type SimulatedConnection = { send(message: SupervisorMessage): void; sendGarbage(): void; end(): void }

/** A supervisor process: the real decisions, and signals, files and sockets that are simulated. */
export class SimulatedSupervisor extends SimulatedProcess {
  readonly name: string
  readonly pid: number
  readonly protocol: number
  /** It did not reply to a worker that tried to connect. */
  isSilent = false
  readonly #host: SupervisorHost
  readonly #workers: SupervisedWorkers
  /** Notify the other sides that this process has exited. */
  readonly #closeListeners = new Set<() => void>()

  constructor(host: SupervisorHost, number: number, protocol: number) {
    super(host.time)
    this.#host = host
    this.name = `supervisor-${number}`
    this.pid = 1_000 + number
    this.protocol = protocol
    this.#workers = new SupervisedWorkers({
      supervise: options => new SimulatedSupervisedWorker(host, this, options),
      onWorker: () => this.sweep(),
      track: work => void work,
    })
  }

  /** A connection from a process of a worker; `onReply` and `onClose` are called there. */
  accept(client: SimulatedProcess, name: string, onReply: (reply: SupervisorReply) => void, onClose: () => void): SimulatedConnection {
    const { time } = this.#host
    const host = this.#host
    let isOpen = true
    const close = (): void => {
      if (!isOpen) return
      isOpen = false
      this.#closeListeners.delete(close)
      time.after(messageMs, () => client.receive(onClose))
    }
    this.#closeListeners.add(close)
    const reply = (message: SupervisorReply): void => {
      if (!isOpen) return
      host.reportMessage(`  ${this.name} → ${name}: ${formatMessage(message)}`, message.kind === 'alive')
      time.after(messageMs, () => client.receive(() => onReply(message)))
    }
    const { onMessage, onClose: onClientClose } = this.#workers.connect(reply, () => {
      host.reportMessage(`  ${this.name} closes the connection of ${name}`)
      close()
      onClientClose()
    })
    const deliver = (handle: () => void): void => void time.after(messageMs, () => this.receive(handle))
    reply({ kind: 'ready', pid: this.pid })
    return {
      send: message => {
        host.reportMessage(`  ${name} → ${this.name}: ${formatMessage(message)}`, message.kind === 'renewed')
        deliver(() => isOpen && onMessage(message))
      },
      sendGarbage: () => {
        host.reportMessage(`  ${name} → ${this.name}: garbage`)
        deliver(() => {
          // What `onJsonLines` reports as invalid.
          host.reportMessage(`  ${this.name} closes the connection of ${name}`)
          close()
          onClientClose()
        })
      },
      end: () =>
        deliver(() => {
          isOpen = false
          this.#closeListeners.delete(close)
          onClientClose()
        }),
    }
  }

  /** Saves what workers and supervisors that were killed together have left. */
  sweep(): void {
    for (const { uid, owners } of [...this.#host.directories.values()]) {
      if (owners.size > 0) continue
      this.#host.killRun(uid, this.name)
      this.after(cleanUpMs, () => {
        this.#host.removeDirectory(uid)
        this.#host.report(`${this.name} saves the state of ${uid}, whose worker and supervisor were killed`)
      })
    }
  }

  override kill(): void {
    super.kill()
    this.#host.report(`${this.name} is killed`)
    for (const close of this.#closeListeners) close()
    this.#host.onExit(this)
  }
}

class SimulatedSupervisedWorker implements SupervisedWorkerPart {
  readonly #host: SupervisorHost
  readonly #process: SimulatedSupervisor
  readonly #supervision: Supervision
  readonly #worker: Parameters<SupervisorParts['supervise']>[0]
  #cancelWake = (): void => {}

  constructor(host: SupervisorHost, process: SimulatedSupervisor, options: Parameters<SupervisorParts['supervise']>[0]) {
    this.#host = host
    this.#process = process
    this.#worker = options
    this.#supervision = new Supervision({ ...options, nowMs: host.nowMs() })
  }

  handle(event: SupervisionEvent): void {
    for (const action of this.#supervision.step(event, this.#host.nowMs())) this.#execute(action)
  }

  async settled(): Promise<void> {}

  #execute(action: SupervisionAction): void {
    const host = this.#host
    const process = this.#process
    switch (action.kind) {
      case 'record': {
        const { uid } = action.run
        const directory = host.directories.get(uid)
        if (!directory) throw new Error(`the directory of ${uid} was removed`)
        directory.owners.add(process)
        directory.holders.add(process)
        process.after(armMs, () => this.handle({ kind: 'armed', uid, fifo: uid }))
        return
      }
      case 'updateRecord':
        return
      case 'disown':
        host.directories.get(action.run.uid)?.owners.delete(process)
        return
      case 'release':
        host.directories.get(action.uid)?.holders.delete(process)
        return
      case 'signal':
        host.signal(action.groups, action.send, process.name)
        if (action.send === 'SIGKILL') host.killRun(action.uid, process.name)
        return
      case 'awaitExit':
        this.#awaitExit(action.uid)
        return
      case 'cleanUp': {
        const { uid } = action.run
        process.after(cleanUpMs, () => {
          if (host.directories.has(uid)) host.report(`${process.name} saves the state of ${uid}, removes its directory`)
          host.removeDirectory(uid)
          this.handle({ kind: 'cleanedUp', uid })
        })
        return
      }
      case 'killWorker':
        host.workerOf(this.#worker.worker.pid)?.kill(`is killed by ${process.name}`)
        return
      case 'reply':
        this.#worker.answer(action.reply)
        return
      case 'check':
        process.after(action.inMs, () => this.handle({ kind: 'check' }))
        return
      case 'wake':
        this.#cancelWake()
        this.#cancelWake = process.after(action.inMs, () => this.handle({ kind: 'woken' }))
        return
    }
  }

  #awaitExit(uid: string): void {
    if (this.#supervision.groupsOf(uid).some(group => this.#host.engines[group - 1]?.isAlive)) {
      this.#process.after(exitCheckMs, () => this.#awaitExit(uid))
      return
    }
    this.#host.killRun(uid, this.#process.name)
    this.handle({ kind: 'exited', uid })
  }
}
