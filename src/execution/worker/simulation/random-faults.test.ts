import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { protocolVersion } from '../supervisor/supervisor-protocol.ts'
import { HostPlayer } from './host-player.testing.ts'
import { SimulatedHost } from './simulated-host.testing.ts'
import type { SimulatedWorker } from './simulated-worker.testing.ts'

/** Faults of the network, the API server and dispatch, which may come at any time, and how each ends. */
const clusterFaults = { cut: 'heal', slow: 'slow 5ms', 'stall-watch': 'deliver-watch', restart: '', 'delete-lease': '' } as const
/** Faults of a worker. They only come while its supervisor runs: with both stopped, nothing on the host can stop an engine. */
const workerFaults = { pause: 'resume', block: 'unblock', kill: '' } as const
/** Faults of the supervisor. They only come while no engine needs it. */
const supervisorFaults = { 'pause supervisor': 'resume', 'kill supervisor': '' } as const

type Fault = keyof typeof clusterFaults | keyof typeof workerFaults | keyof typeof supervisorFaults
const faults = Object.keys({ ...clusterFaults, ...workerFaults, ...supervisorFaults }) as Fault[]

const step = fc.record({
  // More often what makes a deadline matter.
  fault: fc.constantFrom(...faults, 'cut', 'cut', 'cut', 'pause', 'pause', 'kill supervisor'),
  afterMs: fc.oneof(fc.integer({ min: 50, max: 1_500 }), fc.integer({ min: 50, max: 6_000 })),
  forMs: fc.oneof(fc.integer({ min: 100, max: 5_000 }), fc.integer({ min: 5_000, max: 25_000 })),
  requestMs: fc.integer({ min: 5, max: 2_500 }),
  responseMs: fc.integer({ min: 5, max: 2_500 }),
  /** Of the engine of the next Run, after SIGINT. */
  stop: fc.constantFrom('never', 'never', '200ms', '3s'),
  runs: fc.constantFrom('1h', '1h', '10s'),
})

type FaultStep = { fault: Fault; forMs: number; requestMs: number; responseMs: number }

class FaultRunner {
  readonly host = new SimulatedHost({ showsMessages: true })
  readonly #player = new HostPlayer(this.host)
  #workers = 0
  #runs = 0

  /** A worker that exited is followed by the next one; one without a Run gets one. */
  async ensureRun(stop: string, runs: string): Promise<void> {
    const current = this.#current
    if (!current?.isAlive) await this.#player.play('worker', [`w${++this.#workers}`])
    else if (current.isRunning && current.isSupervised && !current.isBusy && !current.isFenced)
      await this.#player.play('run', [current.name, `r${++this.#runs}`], { stop, runs })
  }

  async inject({ fault, forMs, requestMs, responseMs }: FaultStep): Promise<void> {
    const worker = this.#current as SimulatedWorker
    const supervisor = this.host.supervisor(protocolVersion)
    const later = (command: string, name: string): void => {
      if (command !== '') this.host.time.after(forMs, () => void this.#player.play(command, [name]))
    }
    if (fault === 'slow') {
      await this.#player.play('slow', [`${requestMs}ms`, `${responseMs}ms`])
      later('slow', '5ms')
    } else if (fault in clusterFaults) {
      await this.#player.play(fault, [worker.name])
      later(clusterFaults[fault as 'cut'], worker.name)
    } else if (fault in workerFaults) {
      if (!worker.isSupervised || !worker.isRunning) return
      await this.#player.play(fault, [worker.name])
      later(workerFaults[fault as 'pause'], worker.name)
    } else if (supervisor?.isRunning && this.#isStoppable(fault === 'kill supervisor')) {
      await this.#player.play(fault.split(' ')[0] as string, [supervisor.name])
      later(supervisorFaults[fault as 'pause supervisor'], supervisor.name)
    }
  }

  /** Everything ends well: whatever a worker left is cleaned up by the supervisor of the next one. */
  async finish(): Promise<void> {
    await this.host.advance(60_000)
    await this.#player.play('worker', ['last'])
    await this.host.advance(20_000)
    const active = new Set([...this.host.workers.values()].filter(worker => worker.isAlive).flatMap(worker => worker.runUids))
    deepEqual(
      [...this.host.directories.keys()].filter(uid => !active.has(uid)),
      [],
    )
    deepEqual(
      this.host.engines.filter(engine => engine.isAlive && !active.has(engine.uid)).map(({ uid }) => uid),
      [],
    )
  }

  /** Whether every engine ends without the supervisor: its worker runs, or its reaper kills it when the supervisor is killed too. */
  #isStoppable(isKill: boolean): boolean {
    return this.host.engines.every(engine => {
      const worker = this.host.workers.get(engine.worker)
      return !engine.isAlive || worker?.isRunning || (isKill && !worker?.isAlive)
    })
  }

  get #current(): SimulatedWorker | undefined {
    return [...this.host.workers.values()].at(-1)
  }
}

test('invariant 2: under random faults no engine runs when its worker is declared lost, none gets a second SIGINT, and nothing is left', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async steps => {
      const runner = new FaultRunner()
      const { host } = runner
      try {
        for (const { afterMs, stop, runs, ...fault } of steps) {
          await runner.ensureRun(stop, runs)
          await host.advance(150)
          await runner.ensureRun(stop, runs)
          await host.advance(afterMs)
          await runner.inject(fault)
        }
        await runner.finish()
      } catch (error) {
        throw new Error(`${(error as Error).message}\n${host.lines.take().join('\n')}`, { cause: error })
      }
    }),
    { numRuns: 150 },
  )
})
