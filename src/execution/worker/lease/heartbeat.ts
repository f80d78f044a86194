import { hostname } from 'node:os'
import type { Worker as Thread } from 'node:worker_threads'
import { systemNamespace } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import { smallThreadOptions, startThread } from '../../../kubernetes/util/index.ts'
import { bootMs, type WorkerIdentity } from '../supervisor/index.ts'
import type { WorkerCapabilities } from '../worker-capabilities.ts'
import { type FromHeartbeat, type HeartbeatData, sharedIndex, type ToHeartbeat } from './heartbeat-protocol.ts'
import type { LeaseTimings } from './lease-timings.ts'
import { deregister, patchWorkerStatus, type Registration, register, type WorkerStatusPatch } from './registration.ts'

export type HeartbeatOptions = {
  client: Client
  /** A function, where it is renewed: asked about once a second. */
  token: string | (() => string)
  caCertificate: string | undefined
  name: string
  pool: string
  once: boolean
  slots: number
  capabilities: WorkerCapabilities
  version: string | undefined
  timings: LeaseTimings
  /** This process, as the supervisor knows it. */
  worker: WorkerIdentity
  /** A main thread that stands still for longer lets its Lease run out. Default: 120,000. */
  stuckMs?: number
  /** Lease and Worker are made; nobody has been told yet that it is ready. */
  onRegistered?(): void
  /** `atMs` is when the renewal was sent, by `bootMs`. */
  onRenewed(atMs: number): void
  /** The Lease is gone or another's: somebody has already decided that this worker is dead. */
  onLeaseLost(): void
  onError(error: unknown): void
}

/** What a worker says of itself is worth this long. */
const statusTimeoutMs = 10_000

/** How often the main thread shows that it turns. */
const aliveEveryMs = 1_000

/**
 * The worker's Lease and Worker object: makes them, has the Lease renewed on a thread of its own, says what the worker does, takes
 * both away.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  /** Invariant 2: from before the last successful renewal was sent. */
  readonly #times = new BigInt64Array(new SharedArrayBuffer(16))
  #registration: Registration | undefined
  #thread: Thread | undefined
  #supervisorSocket: string | undefined
  #alive: NodeJS.Timeout | undefined
  #isOver = false
  #token = ''

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  /** Also right while this thread has had no time to hear of a renewal. */
  get renewedAtMs(): number {
    return Number(Atomics.load(this.#times, sharedIndex.renewedAtMs))
  }

  /**
   * Registers and begins to renew.
   * @throws {RegisterError} when the name is taken or the API refuses.
   */
  async start(): Promise<void> {
    const { client, name, pool, once, slots, version, timings, capabilities } = this.#options
    const sentAtMs = bootMs()
    this.#registration = await register(client, {
      name,
      pool,
      slots,
      lifecycle: once ? 'OneShot' : 'Warm',
      labels: capabilities.labels,
      leaseDurationMs: timings.durationMs,
    })
    Atomics.store(this.#times, sharedIndex.renewedAtMs, BigInt(Math.floor(sentAtMs)))
    this.#options.onRenewed(sentAtMs)
    this.#options.onRegistered?.()
    this.#recordProgress()
    this.#alive = setInterval(() => {
      this.#recordProgress()
      const token = this.#currentToken()
      if (token !== this.#token) this.#post({ kind: 'token', token })
      this.#token = token
    }, aliveEveryMs)
    // A little later: the first Run may be here in a moment, and the first renewal is not due yet.
    setTimeout(() => this.#isOver || this.#startThread(), timings.renewMs / 4).unref()
    const { engines, capacity, isolation } = capabilities
    const known = { ...(engines && { engines }), ...(capacity && { capacity }), ...(isolation && { isolation }) }
    await this.reportStatus({
      phase: 'Ready',
      idleSince: rfc3339(Date.now()),
      host: hostname(),
      pid: process.pid,
      version,
      runs: [],
      ...known,
    })
  }

  /** Sets the Worker's status. */
  async reportStatus(status: WorkerStatusPatch): Promise<void> {
    // Where packets vanish, a worker that is fenced must not wait for its last words.
    await patchWorkerStatus(this.#options.client, this.#options.name, status, AbortSignal.timeout(statusTimeoutMs))
  }

  /** The supervisor listens there now: it hears of each renewal from the thread itself. */
  useSupervisor(path: string): void {
    this.#supervisorSocket = path
    this.#post({ kind: 'supervisor', path })
  }

  /** Stops renewing, then takes away Worker and Lease, in this order: no Run is given to a worker without a Lease. */
  async deregister(): Promise<void> {
    await this.stopRenewing()
    const { client, name, onError } = this.#options
    if (this.#registration) await deregister(client, name, this.#registration, { signal: AbortSignal.timeout(5_000), onError })
  }

  /** Stops renewing and leaves everything as it is. */
  async stopRenewing(): Promise<void> {
    this.#isOver = true
    clearInterval(this.#alive)
    this.#post({ kind: 'stop' })
    await this.#thread?.terminate()
  }

  #recordProgress(): void {
    Atomics.store(this.#times, sharedIndex.aliveAtMs, BigInt(Math.floor(bootMs())))
  }

  #currentToken(): string {
    const { token } = this.#options
    return typeof token === 'string' ? token : token()
  }

  #startThread(): void {
    const { client, name, caCertificate, worker, timings, stuckMs = 120_000, onError } = this.#options
    this.#token = this.#currentToken()
    const workerData: HeartbeatData = {
      leaseUrl: `${client.server}/apis/coordination.k8s.io/v1/namespaces/${systemNamespace}/leases/${name}`,
      ...{ leaseUid: this.#registration?.leaseUid ?? '', token: this.#token, caCertificate, worker, renewMs: timings.renewMs, stuckMs },
      shared: this.#times.buffer as SharedArrayBuffer,
    }
    const thread = startThread('execution/worker/lease/heartbeat-thread', { workerData, ...smallThreadOptions() })
    this.#thread = thread
    thread.on('message', (message: FromHeartbeat) => this.#onMessage(message))
    thread.on('error', onError)
    thread.on('exit', () => {
      // A bug in it costs a heartbeat and not the Run.
      if (!this.#isOver && this.#thread === thread) setTimeout(() => this.#isOver || this.#startThread(), timings.renewMs / 4)
    })
    if (this.#supervisorSocket) this.#post({ kind: 'supervisor', path: this.#supervisorSocket })
  }

  #onMessage(message: FromHeartbeat): void {
    const { onRenewed, onLeaseLost, onError } = this.#options
    if (message.kind === 'renewed') onRenewed(this.renewedAtMs)
    else if (message.kind === 'lost') {
      this.#isOver = true
      onLeaseLost()
    } else onError(new Error(message.message))
  }

  #post(message: ToHeartbeat): void {
    this.#thread?.postMessage(message)
  }
}
