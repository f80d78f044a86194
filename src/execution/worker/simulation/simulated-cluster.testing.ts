import { FailureDetector } from '../../../controllers/dispatch/failure-detection/index.ts'
import type { VirtualTimers } from '../../../kubernetes/testing/virtual-timers.ts'
import { defaultLeaseTimings } from '../lease/lease-timings.ts'
import type { SimulatedProcess } from './simulated-process.testing.ts'

/** How long a watch event takes. */
const watchDelayMs = 5

/** The API server: Leases by name, each with a version that changes with every write. */
export class SimulatedLeases {
  readonly #time: VirtualTimers
  readonly #leases = new Map<string, { uid: string; version: number }>()
  readonly #onChange: (name: string, version: string | undefined) => void
  #version = 0
  requestMs = 5
  responseMs = 5
  /** Packets of the host are dropped. */
  isCutOff = false

  constructor(time: VirtualTimers, onChange: (name: string, version: string | undefined) => void) {
    this.#time = time
    this.#onChange = onChange
  }

  create(name: string, uid: string): void {
    this.#leases.set(name, { uid, version: ++this.#version })
    this.#onChange(name, String(this.#version))
  }

  versionOf(name: string): string | undefined {
    const lease = this.#leases.get(name)
    return lease && String(lease.version)
  }

  delete(name: string): void {
    this.#leases.delete(name)
    this.#onChange(name, undefined)
  }

  /** A renewal from a worker's host. Rejects after `timeoutMs`, as the client gives up; the server may still apply the request. */
  renew(
    client: SimulatedProcess,
    name: string,
    uid: string,
    timeoutMs: number,
    onApplied: () => void,
  ): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const cancel = client.after(timeoutMs, () => reject(new Error('timeout')))
      if (this.isCutOff) return
      this.#time.after(this.requestMs, () => {
        const status = this.#apply(name, uid, onApplied)
        this.#time.after(this.responseMs, () => {
          if (this.isCutOff) return
          client.receive(() => {
            cancel()
            resolve({ status, text: '' })
          })
        })
      })
    })
  }

  #apply(name: string, uid: string, onApplied: () => void): number {
    const lease = this.#leases.get(name)
    if (!lease) return 404
    if (lease.uid !== uid) return 409
    lease.version = ++this.#version
    onApplied()
    this.#onChange(name, String(lease.version))
    return 200
  }
}

/** Dispatch: its failure detector with a clock of its own; each expiry is confirmed with the server before the worker is declared lost. */
export class SimulatedObserver {
  readonly #time: VirtualTimers
  readonly #leases: SimulatedLeases
  readonly #onLost: (name: string) => void
  /** Its cache: by worker, the version of the Lease. Undefined: deleted. */
  readonly #cache = new Map<string, string | undefined>()
  #detector = new FailureDetector(defaultLeaseTimings.durationMs)
  #cancelPass = (): void => {}
  #stalled: (() => void)[] | undefined

  constructor(time: VirtualTimers, leases: SimulatedLeases, onLost: (name: string) => void) {
    this.#time = time
    this.#leases = leases
    this.#onLost = onLost
  }

  /** Another process becomes the leader of dispatch: it has observed nothing yet. */
  restart(): void {
    this.#detector = new FailureDetector(defaultLeaseTimings.durationMs)
    for (const [name, version] of this.#cache) this.#observe(name, version)
    this.#pass()
  }

  /** Worker and Lease were deleted. */
  forget(name: string): void {
    this.#cache.delete(name)
    this.#detector.workerDeleted(name, this.#nowMs)
    this.#detector.leaseDeleted(name, this.#nowMs)
  }

  /** While it is stalled its watch delivers nothing; afterwards everything, in order (invariant 6). */
  set isStalled(isStalled: boolean) {
    if (isStalled) this.#stalled ??= []
    else {
      const events = this.#stalled ?? []
      this.#stalled = undefined
      for (const deliver of events) deliver()
    }
  }

  /** A watch event. */
  notify(name: string, version: string | undefined): void {
    const deliver = (): void => {
      if (version === undefined && !this.#cache.has(name)) return
      this.#cache.set(name, version)
      this.#observe(name, version)
      this.#pass()
    }
    this.#time.after(watchDelayMs, () => {
      if (this.#stalled) this.#stalled.push(deliver)
      else deliver()
    })
  }

  /** It has another origin than the clocks of the workers. */
  get #nowMs(): number {
    return this.#time.nowMs() + 5_000_000
  }

  #observe(name: string, version: string | undefined): void {
    const nowMs = this.#nowMs
    if (version === undefined) this.#detector.leaseDeleted(name, nowMs)
    else this.#detector.leaseChanged({ worker: name, uid: name, resourceVersion: version, isOfWorker: true }, nowMs)
    this.#detector.workerChanged({ kind: 'Worker', namespace: '', name, uid: name, resourceVersion: '1' }, nowMs)
  }

  #pass(): void {
    this.#cancelPass()
    const { expired, requeueAfterMs } = this.#detector.decide(this.#nowMs)
    for (const { worker, lease } of expired) this.#confirm(worker, lease?.resourceVersion)
    if (requeueAfterMs !== Number.POSITIVE_INFINITY) this.#cancelPass = this.#time.after(requeueAfterMs, () => this.#pass())
  }

  /** As `shell/execute-actions.ts`: reads the Lease, and deletes it at the version that was observed. */
  #confirm(name: string, observed: string | undefined): void {
    const detector = this.#detector
    const settle = (outcome: 'Lost' | 'Renewed'): void => {
      detector.lossSettled(name, outcome, this.#nowMs)
      this.#pass()
    }
    this.#time.after(watchDelayMs, () => {
      // The process that asked is not the leader any more.
      if (this.#detector !== detector) return
      if (this.#leases.versionOf(name) !== observed) return settle('Renewed')
      this.#time.after(watchDelayMs, () => {
        if (this.#leases.versionOf(name) !== observed) return settle('Renewed')
        settle('Lost')
        this.forget(name)
        this.#onLost(name)
        if (observed !== undefined) this.#leases.delete(name)
      })
    })
  }
}
