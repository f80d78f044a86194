import { VirtualClock } from '../../../test/support/virtual-clock.ts'
import type { LeaseBody } from '../client/index.ts'
import { alreadyExists, conflict, type KubeObject, notFound } from '../object/index.ts'
import { LeaseHolder, type LeaseStore } from './index.ts'

export const durations = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 }
/** How often a leader writes. */
const writePeriodMs = 1_000

const resource = { group: 'coordination.k8s.io', plural: 'leases' }

/** What happens in an {@link ElectionCluster}. A routine event is one that repeats: a renewal, a write of the leader. */
export type ElectionEvent = { readonly atMs: number; readonly text: string; readonly isRoutine: boolean }

/**
 * Processes that contend for one Lease on virtual time, and their server: one Lease and one object that the leader writes, both with strict
 * versions. Requests and responses take `delayMs()` each.
 */
export class ElectionCluster {
  readonly time = new VirtualClock()
  readonly events: ElectionEvent[] = []
  readonly contenders = new Map<string, Contender>()
  /** The leadership, as `<identity>-<number>`, of each accepted write to the object. */
  readonly writers: string[] = []
  lease: KubeObject<LeaseBody> | undefined
  #version = 0

  contender(identity: string, delayMs = 5): Contender {
    const contender = new Contender(this, identity, delayMs)
    this.contenders.set(identity, contender)
    return contender
  }

  /** Who leads by their own judgment. A stopped process acts on nothing. */
  get leaders(): string[] {
    return [...this.contenders.values()].filter(contender => contender.isRunning && contender.holder.isHeld).map(({ identity }) => identity)
  }

  report(text: string, isRoutine = false): void {
    this.events.push({ atMs: this.time.nowMs(), text, isRoutine })
  }

  deleteLease(): void {
    this.lease = undefined
    this.report('Lease: deleted by an administrator')
  }

  store(contender: Contender): LeaseStore {
    const write = (spec: LeaseBody['spec']): KubeObject<LeaseBody> => {
      const metadata = { name: 'ctl', namespace: 'a', uid: 'u', resourceVersion: String(++this.#version), creationTimestamp: '' }
      this.lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }
      return this.lease
    }
    return {
      read: () => contender.request(() => this.lease),
      create: lease =>
        contender.request(() => {
          if (this.lease) {
            this.report(`Lease: create of ${contender.identity} is rejected: AlreadyExists`)
            throw alreadyExists(resource, 'ctl')
          }
          this.report(`Lease: created by ${contender.identity}`)
          return write(lease.spec)
        }),
      update: lease =>
        contender.request(() => {
          if (!this.lease) throw notFound(resource, 'ctl')
          if (lease.metadata.resourceVersion !== this.lease.metadata.resourceVersion) {
            this.report(`Lease: update of ${contender.identity} is rejected: Conflict`)
            throw conflict(resource, 'ctl', 'moved on')
          }
          const before = this.lease.spec
          if (lease.spec?.holderIdentity === before?.holderIdentity) this.report(`Lease: renewed by ${contender.identity}`, true)
          else if (lease.spec?.holderIdentity === '') this.report(`Lease: released by ${contender.identity}`)
          else this.report(`Lease: taken over by ${contender.identity}, transition ${lease.spec?.leaseTransitions}`)
          return write(lease.spec)
        }),
    }
  }

  /** The version of the object that the leader writes. */
  readonly object = {
    read: (contender: Contender): Promise<number> => contender.request(() => this.writers.length),
    write: (contender: Contender, leadership: string, version: number): Promise<boolean> =>
      contender.request(() => {
        const isLate = !contender.holder.isHeld
        const text = `object: ${isLate ? 'late ' : ''}write of ${contender.identity}`
        if (version !== this.writers.length) {
          this.report(`${text} is rejected: Conflict`)
          return false
        }
        this.writers.push(leadership)
        this.report(text, !isLate)
        return true
      }),
  }
}

/** One process: its clocks have other origins than those of the others, and it may be stopped (SIGSTOP) or cut off from the server. */
export class Contender {
  readonly identity: string
  readonly holder: LeaseHolder
  readonly run: Promise<void>
  isCutOff = false
  delayMs: () => number
  /** A wall clock is informational: a jump changes nothing. */
  wallJumpMs = 0
  /**
   * Stops the process for this long between its next check that it leads and the write that it checked for; Infinity: until {@link resume}.
   * The time counts from the check, which is up to {@link writePeriodMs} later.
   */
  pauseInNextWriteMs: number | undefined
  readonly #cluster: ElectionCluster
  readonly #stop = new AbortController()
  #clockJumpMs = 0
  #resumed: PromiseWithResolvers<void> | undefined
  #leaderships = 0

  constructor(cluster: ElectionCluster, identity: string, delayMs: number) {
    this.identity = identity
    this.delayMs = () => delayMs
    this.#cluster = cluster
    const { time } = cluster
    const originMs = identity.length * 1_000_000
    const sleep = async (ms: number, signal?: AbortSignal) => {
      await time.sleep(ms, signal)
      await this.running()
    }
    this.holder = new LeaseHolder({
      ...{ leaseName: 'ctl', namespace: 'a', identity, ...durations },
      clock: { nowMs: () => time.nowMs() + originMs + this.#clockJumpMs, sleep },
      random: () => 0.5,
      wallMs: () => 1e12 + time.nowMs() * 7 - originMs + this.wallJumpMs,
      store: cluster.store(this),
    })
    this.run = this.holder.run(this.#stop.signal, {
      onGained: () => {
        cluster.report(`${identity} leads`)
        void this.#write(`${identity}-${++this.#leaderships}`, this.#leaderships)
      },
      onLost: () => cluster.report(`${identity} does not lead any more`),
    })
  }

  get isRunning(): boolean {
    return this.#resumed === undefined
  }

  /** Stops the process until {@link resume}: no timer and no response wakes it. */
  pause(): void {
    this.#resumed ??= Promise.withResolvers()
  }

  resume(): void {
    this.#resumed?.resolve()
    this.#resumed = undefined
  }

  /** Its monotonic clock advances, as if its machine had been suspended. */
  jump(ms: number): void {
    this.#clockJumpMs += ms
  }

  async running(): Promise<void> {
    while (this.#resumed) await this.#resumed.promise
  }

  requestStop(): void {
    this.#stop.abort()
  }

  async stop(): Promise<void> {
    this.requestStop()
    await this.#cluster.time.advance(100)
    await this.run
  }

  /** Sends a request to the server. A process that is stopped has sent it already, and reads the response when it continues. */
  async request<T>(apply: () => T): Promise<T> {
    const { time } = this.#cluster
    if (this.isCutOff) throw new Error('no route')
    await time.sleep(this.delayMs())
    let result: { value: T } | { error: unknown }
    try {
      result = { value: apply() }
    } catch (error) {
      result = { error }
    }
    await time.sleep(this.delayMs())
    await this.running()
    if ('error' in result) throw result.error
    return result.value
  }

  /** What the manager's `leaderClient` does: checks before each write. Every write carries the version it was decided from (invariant 7). */
  async #write(leadership: string, number: number): Promise<void> {
    const { time, object } = this.#cluster
    let version: number | undefined
    while (this.holder.isHeld && number === this.#leaderships && !this.#stop.signal.aborted) {
      try {
        version ??= await object.read(this)
        // The work of a leadership is aborted with it, also if the process leads again before its request returns.
        if (!this.holder.isHeld || number !== this.#leaderships) return
        if (this.pauseInNextWriteMs !== undefined) {
          this.#cluster.report(`${this.identity} is stopped between its check and its write`)
          this.pause()
          if (Number.isFinite(this.pauseInNextWriteMs)) time.after(this.pauseInNextWriteMs, () => this.resume())
          this.pauseInNextWriteMs = undefined
          await this.running()
        }
        version = (await object.write(this, leadership, version)) ? version + 1 : undefined
      } catch {
        // Cut off: decided again from the current version.
        version = undefined
      }
      await time.sleep(writePeriodMs)
      await this.running()
    }
  }
}
