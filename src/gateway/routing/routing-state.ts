import { setTimeout as sleep } from 'node:timers/promises'
import { tenantResource, workerPoolResource } from '../../api/index.ts'
import { type Client, listWatch } from '../../kubernetes/client/index.ts'
import { isConditionTrue, type KubeObject, type Resource, StatusError } from '../../kubernetes/object/index.ts'
import { claimName, type NameClaim, nameClaimResource, type Partition, partitionResource, relistFromAnnotation } from '../kinds/index.ts'
import { ClaimIndex } from './claim-index.ts'
import { partitionLabel } from './decide-route.ts'
import type { GatewayMap } from './gateway-map.ts'

type Labeled = KubeObject<unknown>

const lookUpTimeoutMs = 5_000
const epochPatienceMs = 2_000
const epochCheckMs = 20

/** The objects of home from which the map follows, kept up to date by watches. With home down the last state stays valid. */
export class RoutingState implements GatewayMap {
  readonly home: string
  readonly #client: Client
  readonly #abort = new AbortController()
  readonly #partitions = new Map<string, Partition>()
  readonly #claims = new ClaimIndex()
  /** Partition by Tenant and by WorkerPool: their label. */
  readonly #tenants = new Map<string, string>()
  readonly #pools = new Map<string, string>()
  readonly #log: (message: string, error?: unknown) => void
  readonly #onPartitions: (partitions: readonly Partition[]) => void
  #roles: GatewayMap['partitions'] = new Map()
  /** The version of home up to which the Partitions are known. */
  #epoch = 0

  /**
   * `home`: name of the Partition that `client` talks to. `onPartitions` is called with every change of the Partitions.
   */
  constructor(
    home: string,
    client: Client,
    { onPartitions, log }: { onPartitions(partitions: readonly Partition[]): void; log(message: string, error?: unknown): void },
  ) {
    this.home = home
    this.#client = client
    this.#onPartitions = onPartitions
    this.#log = log
  }

  get partitionsEpoch(): number {
    return this.#epoch
  }

  get partitions(): GatewayMap['partitions'] {
    return this.#roles
  }

  partitionOf(table: string, name: string): string | undefined {
    return this.#claims.ownerOf(table, name)?.partition
  }

  hasClaims(partition: string, table: string): boolean {
    return this.#claims.hasClaims(partition, table)
  }

  get relistFrom(): number {
    return Number(this.#partitions.get(this.home)?.metadata.annotations?.[relistFromAnnotation] ?? 0) || 0
  }

  tenantOf(namespace: string): string | undefined {
    return this.#claims.ownerOf('namespaces', namespace)?.tenant
  }

  partitionOfTenant(tenant: string): string | undefined {
    return this.#tenants.get(tenant)
  }

  /** Names of the Tenants that have a partition. */
  tenants(): string[] {
    return [...this.#tenants.keys()]
  }

  partitionOfPool(pool: string): string | undefined {
    return this.#pools.get(pool)
  }

  copiesOfHome(): string[] {
    return [...this.#partitions.values()]
      .filter(({ metadata, status }) => metadata.name !== this.home && isConditionTrue(status?.conditions, 'KindsMatch'))
      .map(({ metadata }) => metadata.name)
  }

  /** Resolves when everything was read once. @throws the reason of `signal`. */
  async start(signal?: AbortSignal): Promise<void> {
    const byLabel = (target: Map<string, string>) => ({
      replace(objects: readonly Labeled[]) {
        target.clear()
        for (const object of objects) this.set(object)
      },
      set({ metadata: { name, labels: own } }: Labeled) {
        const partition = own?.[partitionLabel]
        if (partition === undefined) target.delete(name)
        else target.set(name, partition)
      },
      remove: ({ metadata }: Labeled) => void target.delete(metadata.name),
    })
    const reading = [
      this.#watch(partitionResource, {
        replace: partitions => {
          this.#partitions.clear()
          for (const partition of partitions) this.#partitions.set(partition.metadata.name, partition as Partition)
        },
        set: partition => void this.#partitions.set(partition.metadata.name, partition as Partition),
        remove: ({ metadata }) => void this.#partitions.delete(metadata.name),
        changed: version => {
          this.#epoch = Number(version)
          this.#roles = new Map([...this.#partitions.values()].map(partition => [partition.metadata.name, rolesOf(partition)]))
          this.#onPartitions([...this.#partitions.values()])
        },
      }),
      this.#watch(nameClaimResource, {
        replace: claims => this.#claims.replace(claims as NameClaim[]),
        set: claim => this.#claims.set(claim as NameClaim),
        remove: ({ metadata }) => this.#claims.delete(metadata.name),
      }),
      this.#watch(tenantResource, byLabel(this.#tenants)),
      this.#watch(workerPoolResource, byLabel(this.#pools)),
    ]
    const aborted = signal && new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    await Promise.race([Promise.all(reading), ...(aborted ? [aborted] : [])])
  }

  close(): void {
    this.#abort.abort()
  }

  /** A claim that this gateway has made or read: the watch of claims comes later. */
  noteClaim(claim: NameClaim): void {
    this.#claims.set(claim)
  }

  /** Reads one claim from home: it may have been made through another gateway a moment ago. @throws {StatusError} ServiceUnavailable. */
  async lookUp(table: string, name: string): Promise<void> {
    // No object has such a name, and no path can ask for its claim.
    if (/[/%]/.test(name)) return
    const key = claimName(table, name)
    const before = this.#claims.ownerOf(table, name)
    try {
      const claim = await this.#client.resource(nameClaimResource).getOrUndefined(key, { signal: AbortSignal.timeout(lookUpTimeoutMs) })
      if (claim) this.#claims.set(claim)
      // The watch may have seen a new one meanwhile.
      else if (this.#claims.ownerOf(table, name) === before) this.#claims.delete(key)
    } catch (error) {
      throw new StatusError(
        'ServiceUnavailable',
        `whether ${table} ${JSON.stringify(name)} exists is not known, because home does not answer: ${(error as Error).message}`,
        { cause: error },
      )
    }
  }

  /**
   * Reads again which partition has a namespace that one has denied. `epoch`: the version of the Partitions that this one knows; they are waited for, for at
   * most 2 s, because the owner may be a new one.
   */
  async refresh(namespace: string, epoch: number): Promise<void> {
    await this.lookUp('namespaces', namespace)
    await this.waitForPartitions(epoch)
  }

  /** Waits until the Partitions of this version are known, for at most 2 s. */
  async waitForPartitions(epoch: number): Promise<void> {
    const deadlineMs = performance.now() + epochPatienceMs
    while (this.#epoch < epoch && performance.now() < deadlineMs) await sleep(epochCheckMs, undefined, { signal: this.#abort.signal })
  }

  #watch<Body>(
    resource: Resource<Body>,
    target: {
      replace(objects: readonly KubeObject<Body>[]): void
      set(object: KubeObject<Body>): void
      remove(object: KubeObject<Body>): void
      changed?(version: string): void
    },
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    void listWatch(this.#client, resource, {
      signal: this.#abort.signal,
      onReplace: (items, version) => {
        target.replace(items)
        target.changed?.(version)
        resolve()
      },
      onEvent: ({ type, object }) => {
        if (type === 'BOOKMARK') return
        if (type === 'DELETED') target.remove(object)
        else target.set(object)
        target.changed?.(object.metadata.resourceVersion ?? '0')
      },
      onError: (error, retryInMs) => this.#log(`${resource.plural} of home are read again in ${retryInMs} ms`, error),
    })
    return promise
  }
}

const rolesOf = ({ metadata, spec, status }: Partition) => ({
  roles: new Set(spec.roles),
  announced: new Set(status?.announcedRoles),
  isDeleting: metadata.deletionTimestamp !== undefined,
  isStarted: spec.server !== undefined,
})
