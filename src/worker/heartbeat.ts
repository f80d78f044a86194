import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { labels, systemNamespace, workerResource } from '../api/index.ts'
import { type Client, leaseResource } from '../client/index.ts'
import { isReason, rfc3339Micro } from '../kube/index.ts'
import { monotonicMs } from './guard-protocol.ts'
import type { LeaseTimings } from './lease-timings.ts'

/** Why a worker could not register. */
export class RegisterError extends Error {
  override readonly name = 'RegisterError'
}

export type HeartbeatOptions = {
  client: Client
  name: string
  pool: string
  once: boolean
  version: string | undefined
  timings: LeaseTimings
  /** `atMs` is when the renewal was sent, by {@link monotonicMs}. */
  onRenewed(atMs: number): void
  /** The Lease is gone or another's: somebody has already decided that this worker is dead. */
  onGone(): void
  onError(error: unknown): void
}

/** The worker's Lease and Worker object: makes them, renews the Lease, says what the worker does, takes both away. */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #stop = new AbortController()
  #uid = ''
  #workerUid = ''
  #beating: Promise<void> = Promise.resolve()
  /** Invariant 2: from before the last successful renewal was sent. */
  #renewedAtMs = 0

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  get renewedAtMs(): number {
    return this.#renewedAtMs
  }

  /**
   * Registers and begins to renew.
   * @throws {RegisterError} when the name is taken or the API refuses.
   */
  async start(): Promise<void> {
    const { client, name, pool, once, version, timings } = this.#options
    const sentAtMs = monotonicMs()
    try {
      const [lease, worker] = await Promise.all([
        client.resource(leaseResource).create({
          metadata: { name, namespace: systemNamespace, labels: { [labels.pool]: pool } },
          spec: {
            holderIdentity: name,
            leaseDurationSeconds: Math.ceil(timings.durationMs / 1_000),
            acquireTime: rfc3339Micro(Date.now()),
            renewTime: rfc3339Micro(Date.now()),
          },
        }),
        client.resource(workerResource).create({
          metadata: { name, labels: { [labels.pool]: pool } },
          spec: { pool, slots: 1, lifecycle: once ? 'OneShot' : 'Warm' },
        }),
      ])
      this.#uid = lease.metadata.uid
      this.#workerUid = worker.metadata.uid
    } catch (error) {
      const why = isReason(error, 'AlreadyExists')
        ? `worker name ${JSON.stringify(name)} is taken; choose another with --name, or wait until its Lease in ${systemNamespace} is removed`
        : `worker ${JSON.stringify(name)} could not register at ${client.server}: ${(error as Error).message}`
      throw new RegisterError(why, { cause: error })
    }
    this.#renewedAtMs = sentAtMs
    this.#options.onRenewed(sentAtMs)
    this.#beating = this.#beat()
    await this.say({ phase: 'Ready', host: hostname(), pid: process.pid, version, runs: [] })
  }

  /** Sets the Worker's status. */
  async say(status: {
    phase: 'Ready' | 'Busy' | 'Draining'
    runs?: string[]
    host?: string
    pid?: number
    version?: string
  }): Promise<void> {
    await this.#options.client.resource(workerResource).patchStatus(this.#options.name, { status })
  }

  /** Stops renewing, then takes away Worker and Lease, in this order: no Run is given to a worker without a Lease. */
  async end(): Promise<void> {
    this.halt()
    await this.#beating
    const { client, name, onError } = this.#options
    const signal = AbortSignal.timeout(5_000)
    const gone = (error: unknown): void => {
      if (!isReason(error, 'NotFound', 'Conflict')) onError(error)
    }
    await client
      .resource(workerResource)
      .delete(name, { preconditions: { uid: this.#workerUid }, signal })
      .catch(gone)
    await client
      .resource(leaseResource)
      .delete(name, { namespace: systemNamespace, preconditions: { uid: this.#uid }, signal })
      .catch(gone)
  }

  /** Stops renewing and leaves everything as it is. */
  halt(): void {
    this.#stop.abort()
  }

  async #beat(): Promise<void> {
    const { client, name, timings, onRenewed, onGone, onError } = this.#options
    const leases = client.resource(leaseResource)
    let waitMs = timings.renewMs
    while (await this.#sleep(waitMs)) {
      const sentAtMs = monotonicMs()
      try {
        const patch = { metadata: { uid: this.#uid }, spec: { renewTime: rfc3339Micro(Date.now()) } }
        const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(timings.renewMs)])
        await leases.patch(name, patch, { type: 'merge', namespace: systemNamespace, signal })
        this.#renewedAtMs = sentAtMs
        onRenewed(sentAtMs)
        waitMs = Math.max(0, timings.renewMs - (monotonicMs() - sentAtMs))
      } catch (error) {
        if (this.#stop.signal.aborted) return
        if (isReason(error, 'NotFound', 'Conflict')) {
          onGone()
          return
        }
        onError(error)
        waitMs = timings.renewMs / 4
      }
    }
  }

  async #sleep(ms: number): Promise<boolean> {
    await delay(ms, undefined, { signal: this.#stop.signal }).catch(() => {})
    return !this.#stop.signal.aborted
  }
}
