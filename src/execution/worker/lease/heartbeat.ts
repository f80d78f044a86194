import { hostname } from 'node:os'
import type { Worker as Thread } from 'node:worker_threads'
import { systemNamespace } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import { parseServerAddress, smallThreadOptions, startThread } from '../../../kubernetes/util/index.ts'
import { bootMs, type WorkerIdentity } from '../supervisor/index.ts'
import type { WorkerCapabilities } from '../worker-capabilities.ts'
import { type FromHeartbeat, type HeartbeatData, sharedClockSlots, type ToHeartbeat } from './heartbeat-protocol.ts'
import type { LeaseTimings } from './lease-timings.ts'
import { deregister, patchWorkerStatus, type Registration, recordPod, register, type WorkerStatusPatch } from './registration.ts'

export type HeartbeatOptions = {
  client: Client
  /** A function if it is renewed; called about once a second. */
  token: string | (() => string)
  caCertificate: string | undefined
  name: string
  pool: string
  once: boolean
  slots: number
  capabilities: WorkerCapabilities
  /** The uid of the Worker that requested this process. Undefined: the worker creates its own. */
  workerUid?: string | undefined
  /** The UID of the Pod that this process runs in, if a controller created it. */
  podUid?: string | undefined
  version: string | undefined
  timings: LeaseTimings
  /** The identity of this process for the supervisor. */
  worker: WorkerIdentity
  /** The Lease is no longer renewed when the main thread has been blocked for longer. Default: 120,000. */
  stuckMs?: number
  /** Lease and Worker are created; the worker has not reported Ready yet. */
  onRegistered?(registration: Registration): void
  /** `atMs` is when the renewal was sent, by `bootMs`. */
  onRenewed(atMs: number): void
  /** The Lease was deleted or replaced: this worker was declared lost. */
  onLeaseLost(): void
  /** An error with `isRejected: true` means that the API server rejects the credential. */
  onError(error: unknown): void
}

/** Timeout of a status report. */
const statusTimeoutMs = 10_000

/** How often the main thread records that its event loop runs. */
const progressIntervalMs = 1_000

/**
 * The worker's Lease and Worker object: creates them, renews the Lease on a thread of its own, reports the status, deletes both.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  /** Shared with the thread, see {@link sharedClockSlots}. */
  readonly #times = new BigInt64Array(new SharedArrayBuffer(16))
  #registration: Registration | undefined
  /** The status that is only in the Lease yet. */
  #statusInLease: WorkerStatusPatch | undefined
  #thread: Thread | undefined
  #supervisorSocket: string | undefined
  #progressTimer: NodeJS.Timeout | undefined
  #isStopped = false
  #token = ''

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  /** When the last successful renewal was sent, by `bootMs` (invariant 2); current even while this thread's event loop is blocked. */
  get renewedAtMs(): number {
    return Number(Atomics.load(this.#times, sharedClockSlots.renewedAtMs))
  }

  /**
   * Registers the worker and starts to renew its Lease.
   * @throws {RegistrationError} if the name is taken or the API server rejects the request.
   */
  async start(): Promise<void> {
    const { client, name, pool, once, slots, version, timings, capabilities, workerUid, podUid } = this.#options
    const { engines, capacity, isolation, networks } = capabilities
    const status: WorkerStatusPatch = {
      ...{ phase: 'Ready', idleSince: rfc3339(Date.now()), host: hostname(), pid: process.pid, version, runs: [] },
      // Why its Pod did not start before.
      ...(workerUid !== undefined && { reason: null, message: null }),
      ...(engines && { engines }),
      ...(capacity && { capacity }),
      ...(isolation && { isolation }),
      ...(networks && { networks }),
    }
    this.#statusInLease = once && podUid !== undefined && workerUid !== undefined ? status : undefined
    const sentAtMs = bootMs()
    this.#registration = await register(client, {
      name,
      pool,
      slots,
      lifecycle: once ? 'OneShot' : 'Warm',
      labels: capabilities.labels,
      leaseDurationMs: timings.durationMs,
      workerUid,
      podUid,
      statusInLease: this.#statusInLease,
    })
    Atomics.store(this.#times, sharedClockSlots.renewedAtMs, BigInt(Math.floor(sentAtMs)))
    this.#options.onRenewed(sentAtMs)
    this.#options.onRegistered?.(this.#registration)
    this.#recordProgress()
    this.#progressTimer = setInterval(() => {
      this.#recordProgress()
      const token = this.#currentToken()
      if (token !== this.#token) this.#post({ kind: 'token', token })
      this.#token = token
    }, progressIntervalMs)
    // Delayed in favor of the first Run, which may arrive at any moment; the first renewal is not due yet.
    setTimeout(() => this.#isStopped || this.#startThread(), timings.renewMs / 4).unref()
    if (!this.#statusInLease) await this.reportStatus(status)
  }

  /** Whether the status of its registration is in the Lease only: the Worker gets it with the first report. */
  get isStatusInLease(): boolean {
    return this.#statusInLease !== undefined
  }

  /** Sets the Worker's status. */
  async reportStatus(status: WorkerStatusPatch): Promise<void> {
    const { client, name, workerUid, podUid } = this.#options
    const registered = this.#statusInLease
    if (registered && workerUid !== undefined && podUid !== undefined) await recordPod(client, name, workerUid, podUid)
    // Bounded: where packets are dropped, a fenced worker must not wait for its last report.
    await patchWorkerStatus(client, name, { ...registered, ...status }, AbortSignal.timeout(statusTimeoutMs))
    this.#statusInLease = undefined
  }

  /** The thread reports each renewal to the supervisor that listens at this path. */
  useSupervisor(path: string): void {
    this.#supervisorSocket = path
    this.#post({ kind: 'supervisor', path })
  }

  /** Stops renewing, then deletes Worker and Lease. `keepsWorker`: only the Lease; dispatch ends the Runs that it left, or reads the exit code that the host reports, then deletes the Worker. */
  async deregister({ keepsWorker = false }: { keepsWorker?: boolean } = {}): Promise<void> {
    await this.stopRenewing()
    const { client, name, onError } = this.#options
    if (!this.#registration) return
    await deregister(client, name, this.#registration, { signal: AbortSignal.timeout(5_000), onError, keepsWorker })
  }

  /** Stops renewing; Worker and Lease stay. */
  async stopRenewing(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#progressTimer)
    this.#post({ kind: 'stop' })
    await this.#thread?.terminate()
  }

  #recordProgress(): void {
    Atomics.store(this.#times, sharedClockSlots.aliveAtMs, BigInt(Math.floor(bootMs())))
  }

  #currentToken(): string {
    const { token } = this.#options
    return typeof token === 'string' ? token : token()
  }

  #startThread(): void {
    const { client, name, caCertificate, worker, timings, stuckMs = 120_000, onError } = this.#options
    this.#token = this.#currentToken()
    const { baseUrl, socketPath } = parseServerAddress(client.server)
    const workerData: HeartbeatData = {
      socketPath,
      leaseUrl: `${baseUrl}/apis/coordination.k8s.io/v1/namespaces/${systemNamespace}/leases/${name}`,
      ...{ leaseUid: this.#registration?.leaseUid ?? '', token: this.#token, caCertificate, worker, renewMs: timings.renewMs, stuckMs },
      shared: this.#times.buffer as SharedArrayBuffer,
    }
    const thread = startThread('execution/worker/lease/heartbeat-thread', { workerData, ...smallThreadOptions() })
    this.#thread = thread
    thread.on('message', (message: FromHeartbeat) => this.#onMessage(message))
    thread.on('error', onError)
    thread.on('exit', () => {
      // A bug in the thread costs a renewal, not the Run.
      if (!this.#isStopped && this.#thread === thread) setTimeout(() => this.#isStopped || this.#startThread(), timings.renewMs / 4)
    })
    if (this.#supervisorSocket) this.#post({ kind: 'supervisor', path: this.#supervisorSocket })
  }

  #onMessage(message: FromHeartbeat): void {
    const { onRenewed, onLeaseLost, onError } = this.#options
    if (message.kind === 'renewed') onRenewed(this.renewedAtMs)
    else if (message.kind === 'lost') {
      this.#isStopped = true
      onLeaseLost()
    } else onError(Object.assign(new Error(message.message), { isRejected: message.isRejected }))
  }

  #post(message: ToHeartbeat): void {
    this.#thread?.postMessage(message)
  }
}
