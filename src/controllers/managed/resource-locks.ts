/** The shell of `decide-lock.ts`: Leases of resources and of the processes that hold them. */
import { bootClock, type Client, type Clock, type LeaseBody, leaseResource } from '../../kubernetes/client/index.ts'
import {
  coerceError,
  type Informer,
  LeaseHolder,
  type LeaseObservation,
  type LeaseStore,
  type Log,
  type Manager,
  observeLease,
  type Runnable,
  silentLog,
} from '../../kubernetes/controller/index.ts'
import { controllerReference, isReason, type KubeObject, rfc3339Micro } from '../../kubernetes/object/index.ts'
import { decideLock, type HolderState } from './decide-lock.ts'
import { LockLostError } from './lock-lost-error.ts'
import type { Hold } from './reconcile-managed.ts'

export type ResourceLocksOptions = {
  /** For all replicas the same; part of the names of Leases and the value of their labels. */
  readonly name: string
  /** Of the Leases of the processes, and of locks of cluster-scoped resources. */
  readonly namespace: string
  /** Unique per process, even across restarts; also part of a name. */
  readonly identity: string
  /** How long others wait after the last renewal that they saw; default 15,000. */
  readonly leaseDurationMs?: number | undefined
  /** How long this process works after it sent its last successful renewal; default 10,000, must be below leaseDurationMs. */
  readonly renewDeadlineMs?: number | undefined
  /** Time between renewals; default 2,000. */
  readonly retryPeriodMs?: number | undefined
  readonly log?: Log | undefined
  readonly clock?: Clock | undefined
}

const lockLabel = 'oarlock.dev/resource-lock'
const processLabel = 'oarlock.dev/resource-lock-holder'
/** How often Leases of processes that ended are looked for. */
const cleanUpEveryMs = 600_000

/**
 * One Lease per resource, for operators that cannot shard: a replica that has the lock of a resource keeps it, without a request per reconcile, until it
 * stops or is proven dead; then another replica adopts it. The garbage collector deletes the Lease with its resource. Create it before the manager starts.
 */
export class ResourceLocks implements Runnable {
  readonly needsLeader = false
  readonly name: string
  readonly #options: ResourceLocksOptions
  readonly #client: Client
  readonly #clock: Clock
  readonly #log: Log
  readonly #locks: Informer<LeaseBody>
  readonly #processes: Informer<LeaseBody>
  readonly #own: LeaseHolder
  readonly #observations = new Map<string, LeaseObservation>()
  readonly #freed = new Set<(lock: KubeObject<LeaseBody>) => void>()
  /** UIDs of the resources whose lock the server confirmed since this process has had its Lease. */
  readonly #mine = new Set<string>()
  #session: AbortController | undefined

  constructor(manager: Manager, options: ResourceLocksOptions) {
    const { name, namespace, identity, leaseDurationMs, renewDeadlineMs, retryPeriodMs, clock = bootClock, log = silentLog } = options
    this.name = `locks of ${name}`
    this.#options = options
    this.#client = manager.client
    this.#clock = clock
    this.#log = log.child({ locks: name })
    this.#locks = manager.informer(leaseResource, { labelSelector: `${lockLabel}=${name}` })
    this.#processes = manager.informer(leaseResource, { namespace, labelSelector: `${processLabel}=${name}` })
    this.#processes.onChange({ changed: ({ type, object }) => this.#observe(object, type === 'deleted') })
    const leaseName = `${name}-${identity}`
    this.#own = new LeaseHolder({
      ...{ leaseName, namespace, identity, leaseDurationMs, renewDeadlineMs, retryPeriodMs, clock, log },
      store: processLeaseStore(this.#client, { name, leaseName, namespace, timeoutMs: Math.ceil(renewDeadlineMs ?? 10_000) }),
    })
    manager.add(this)
  }

  /** Whether this process can have locks at this instant. */
  get hasLease(): boolean {
    return this.#session !== undefined && this.#own.isHeld
  }

  /** Called with each lock whose holder turned out to be dead. */
  onFreed(handler: (lock: KubeObject<LeaseBody>) => void): void {
    this.#freed.add(handler)
  }

  async start(signal: AbortSignal): Promise<void> {
    const looking = this.#look(signal)
    await this.#own.run(signal, {
      onGained: () => {
        this.#session = new AbortController()
        // What waited for this process to have a Lease is due.
        for (const lock of this.#locks.list()) for (const handler of this.#freed) handler(lock)
      },
      onLost: () => {
        this.#session?.abort(new LockLostError('the Lease of this process was not renewed in time'))
        this.#session = undefined
        this.#mine.clear()
      },
    })
    await looking
  }

  /** The right to work on `object`; undefined while another process has it, or this one has no Lease. */
  async acquire(object: KubeObject<unknown>, signal: AbortSignal): Promise<Hold | undefined> {
    const session = this.#session
    if (!session || !this.hasLease) return undefined
    const { uid } = object.metadata
    if (!this.#mine.has(uid) || this.#lockOf(object)?.spec?.holderIdentity !== this.#options.identity) {
      this.#mine.delete(uid)
      if (!(await this.#take(object, signal)) || this.#session !== session) return undefined
      this.#mine.add(uid)
    }
    const check = () => {
      if (this.#session !== session || !this.#own.isHeld)
        throw new LockLostError(`the lock of ${object.kind} ${object.metadata.name} was lost`)
    }
    return { signal: session.signal, check }
  }

  /** The resource no longer exists. */
  forget(uid: string): void {
    this.#mine.delete(uid)
  }

  async #take(object: KubeObject<unknown>, signal: AbortSignal): Promise<boolean> {
    const { identity } = this.#options
    const { name, namespace } = this.#leaseOf(object)
    const handle = this.#client.resource(leaseResource)
    const cached = this.#lockOf(object)
    const lock = cached && { holder: cached.spec?.holderIdentity ?? '' }
    const decision = decideLock(lock, identity, holder => this.#stateOf(holder))
    if (decision === 'wait') return false
    try {
      if (decision === 'create') {
        const labels = { [lockLabel]: this.#options.name }
        const ownerReferences = [{ ...controllerReference(object), controller: false, blockOwnerDeletion: false }]
        await handle.create({ metadata: { name, namespace, labels, ownerReferences }, spec: this.#spec(0) }, { signal })
        return true
      }
      const before = cached as KubeObject<LeaseBody>
      const holder = before.spec?.holderIdentity ?? ''
      // The watch may be cut: silence is proof only if the server confirms it.
      if (decision === 'adopt' && holder !== '' && !(await this.#isConfirmedDead(holder, signal))) return false
      await handle.update({ ...before, spec: this.#spec((before.spec?.leaseTransitions ?? 0) + 1) }, { signal })
      if (decision === 'adopt') this.#log.info({ lock: name, from: holder }, 'adopted a lock')
      return true
    } catch (error) {
      if (isReason(error, 'Conflict', 'AlreadyExists', 'NotFound')) return false
      throw error
    }
  }

  #spec(leaseTransitions: number): NonNullable<LeaseBody['spec']> {
    const now = rfc3339Micro(Date.now())
    return { holderIdentity: this.#options.identity, acquireTime: now, renewTime: now, leaseTransitions }
  }

  #leaseOf({ metadata }: KubeObject<unknown>): { name: string; namespace: string } {
    return { name: `${this.#options.name}-${metadata.uid}`, namespace: metadata.namespace ?? this.#options.namespace }
  }

  #lockOf(object: KubeObject<unknown>): KubeObject<LeaseBody> | undefined {
    const { name, namespace } = this.#leaseOf(object)
    return this.#locks.get(`${namespace}/${name}`)
  }

  #observe(lease: KubeObject<LeaseBody>, isDeleted: boolean): void {
    const holder = this.#identityOf(lease)
    if (isDeleted) {
      // Not proof of death: the process creates it again at its next renewal. From now on its silence counts.
      this.#countSilence(holder)
      return
    }
    this.#observations.set(holder, observeLease(this.#observations.get(holder), lease, this.#clock.nowMs()))
  }

  /** For a process whose Lease is not there. */
  #countSilence(holder: string): void {
    const durationMs = this.#options.leaseDurationMs ?? 15_000
    this.#observations.set(holder, { holder, record: 'deleted', durationMs, seenMs: this.#clock.nowMs() })
  }

  #identityOf({ metadata }: KubeObject<LeaseBody>): string {
    return metadata.name.slice(this.#options.name.length + 1)
  }

  #stateOf(holder: string): HolderState {
    const observation = this.#observations.get(holder)
    if (!observation) {
      // Its Lease is not there: from now on its silence counts.
      this.#countSilence(holder)
      return 'alive'
    }
    if (observation.holder === '') return 'released'
    return this.#clock.nowMs() >= observation.seenMs + observation.durationMs ? 'expired' : 'alive'
  }

  /** Whether the server agrees that the process has not renewed since we saw it last. */
  async #isConfirmedDead(holder: string, signal: AbortSignal): Promise<boolean> {
    const { name, namespace } = this.#options
    const lease = await this.#client.resource(leaseResource).getOrUndefined(`${name}-${holder}`, { namespace, signal })
    const before = this.#observations.get(holder)
    if (!lease) return before?.record === 'deleted' && this.#stateOf(holder) !== 'alive'
    this.#observe(lease, false)
    return this.#stateOf(holder) !== 'alive'
  }

  /** Tells those who wait for a lock when its holder is dead; deletes Leases of processes that ended. */
  async #look(signal: AbortSignal): Promise<void> {
    const { identity, retryPeriodMs = 2_000 } = this.#options
    const reported = new Set<string>()
    let cleanedMs = this.#clock.nowMs()
    while (!signal.aborted) {
      await this.#clock.sleep(Math.min(retryPeriodMs, 1_000), signal)
      if (signal.aborted) return
      const holders = new Map<string, KubeObject<LeaseBody>[]>()
      for (const lock of this.#locks.list()) {
        const holder = lock.spec?.holderIdentity ?? ''
        const locks = holders.get(holder)
        if (locks) locks.push(lock)
        else holders.set(holder, [lock])
      }
      for (const [holder, locks] of holders) {
        if (holder === identity || (holder !== '' && this.#stateOf(holder) === 'alive')) {
          reported.delete(holder)
          continue
        }
        if (reported.has(holder)) continue
        reported.add(holder)
        for (const lock of locks) for (const handler of this.#freed) handler(lock)
      }
      for (const holder of reported) if (!holders.has(holder)) reported.delete(holder)
      if (this.#clock.nowMs() - cleanedMs < cleanUpEveryMs) continue
      cleanedMs = this.#clock.nowMs()
      await this.#cleanUp(holders)
    }
  }

  async #cleanUp(holders: ReadonlyMap<string, unknown>): Promise<void> {
    for (const lease of this.#processes.list()) {
      const { metadata } = lease
      const holder = this.#identityOf(lease)
      if (holder === this.#options.identity || holders.has(holder) || this.#stateOf(holder) === 'alive') continue
      const { name, namespace, uid, resourceVersion } = metadata
      try {
        await this.#client.resource(leaseResource).delete(name, { namespace, preconditions: { uid, resourceVersion } })
        this.#observations.delete(holder)
      } catch (error) {
        this.#log.debug({ err: coerceError(error), lease: name }, 'the Lease of an ended process was not deleted')
      }
    }
  }
}

function processLeaseStore(
  client: Client,
  { name, leaseName, namespace, timeoutMs }: { name: string; leaseName: string; namespace: string; timeoutMs: number },
): LeaseStore {
  const leases = client.resource(leaseResource)
  const bounded = () => ({ signal: AbortSignal.timeout(timeoutMs) })
  const labelled = <T extends { metadata: object }>(lease: T): T => ({
    ...lease,
    metadata: { ...lease.metadata, labels: { [processLabel]: name } },
  })
  return {
    read: () => leases.getOrUndefined(leaseName, { namespace, ...bounded() }),
    create: lease => leases.create(labelled(lease), bounded()),
    update: lease => leases.update(labelled(lease), bounded()),
  }
}
