import type { TranscriptPlayer } from '../../../../test/support/transcripts.ts'
import { parseDuration } from '../../../kubernetes/object/index.ts'
import { protocolVersion } from '../supervisor/supervisor-protocol.ts'
import type { SimulatedHost } from './simulated-host.testing.ts'
import type { SimulatedProcess } from './simulated-process.testing.ts'
import type { SimulatedWorker } from './simulated-worker.testing.ts'

const ms = (text: string | undefined): number | undefined => (text === undefined ? undefined : parseDuration(text))

/**
 * Plays transcripts of one host. A PROCESS is a worker by its name, `supervisor` (the current one), `supervisor-2`, or `all`.
 *
 * `worker NAME protocol=1`, `run NAME RUN stop=2s runs=30s timeout=1m` (`stop`: how long the engine needs after SIGINT, default 500ms, or never),
 * `cancel NAME RUN`, `exit NAME`, `pause PROCESS` (SIGSTOP), `pause-before-report NAME` (after its next fork), `resume PROCESS` (SIGCONT), `kill PROCESS` (SIGKILL), `block NAME` and `unblock NAME`
 * (the event loop of its main thread), `garbage PROCESS` (it sends what is no message), `cut` and `heal` (the host's network), `slow 1s 2s` (requests and
 * responses), `delete-lease NAME`, `stall-watch`, `deliver-watch` and `restart` (of dispatch), `unsafe` (from here on an engine may outlive its Lease),
 * `advance 10s`.
 */
export class HostPlayer implements TranscriptPlayer {
  readonly host: SimulatedHost

  constructor(host: SimulatedHost) {
    this.host = host
  }

  async play(command: string, [name = '', second = '']: string[], options: Record<string, string> = {}): Promise<void> {
    if (command === 'advance') await this.host.advance(parseDuration(name))
    else if (command === 'worker') this.host.addWorker(name, options.protocol === undefined ? undefined : Number(options.protocol))
    else if (command === 'run') this.#run(name, second, options)
    else if (['pause', 'resume', 'kill'].includes(command)) for (const each of this.#processes(name)) each[command as 'pause']()
    else if (!this.#worker(command, name, second)) this.#cluster(command, name, second)
    await this.host.advance(0)
  }

  takeLines(): string[] {
    return this.host.lines.take()
  }

  #run(name: string, uid: string, { stop, runs, timeout }: Record<string, string>): void {
    this.#named(name).start(uid, {
      ...(stop !== undefined && { stopMs: stop === 'never' ? undefined : parseDuration(stop) }),
      ...(runs !== undefined && { runMs: parseDuration(runs) }),
      ...(timeout !== undefined && { timeoutMs: ms(timeout) as number }),
    })
  }

  #worker(command: string, name: string, uid: string): boolean {
    if (command === 'cancel') this.#named(name).cancel(uid)
    else if (command === 'exit') this.#named(name).exit('exits')
    else if (command === 'block' || command === 'unblock') this.#named(name).block(command === 'block')
    else if (command === 'pause-before-report') this.#named(name).isPausedBeforeReport = true
    else if (command === 'garbage') this.#garbage(name)
    else return false
    return true
  }

  #garbage(name: string): void {
    if (!name.startsWith('supervisor')) this.#named(name).sendGarbage()
    else for (const worker of this.host.workers.values()) worker.receiveGarbage()
  }

  #cluster(command: string, name: string, second: string): void {
    const { leases, observer } = this.host
    if (command === 'cut' || command === 'heal') leases.isCutOff = command === 'cut'
    else if (command === 'slow') {
      leases.requestMs = parseDuration(name)
      leases.responseMs = parseDuration(second || name)
    } else if (command === 'delete-lease') leases.delete(name)
    else if (command === 'stall-watch' || command === 'deliver-watch') observer.isStalled = command === 'stall-watch'
    else if (command === 'restart') observer.restart()
    else if (command === 'unsafe') this.host.isUnsafe = true
    else throw new Error(`unknown command ${command}`)
  }

  #named(name: string): SimulatedWorker {
    const worker = this.host.workers.get(name)
    if (!worker) throw new Error(`no worker ${name}`)
    return worker
  }

  #processes(name: string): SimulatedProcess[] {
    const { supervisors, workers, engines } = this.host
    if (name === 'all') return [...engines.map(({ process }) => process), ...workers.values(), ...supervisors]
    if (name === 'supervisor') return [this.host.supervisor(protocolVersion) as SimulatedProcess]
    const supervisor = supervisors.find(each => each.name === name)
    return [supervisor ?? this.#named(name)]
  }
}
