import { tenantResource, workerPoolResource } from '../api/index.ts'
import { type Client, listWatch } from '../kubernetes/client/index.ts'
import { alreadyExists, isReason, type KubeObject, type Resource, StatusError } from '../kubernetes/object/index.ts'
import { type ObjectOwner, partitionLabel } from './decide-route.ts'
import type { GatewayMap } from './gateway.ts'
import { claimName, type NameClaim, nameClaimResource, type Partition, partitionResource } from './kinds.ts'

type Labeled = KubeObject<unknown>

/** The objects of home from which the map follows, kept up to date by watches. With home down the last state stays valid. */
export class RoutingState implements GatewayMap {
  readonly home: string
  readonly #client: Client
  readonly #abort = new AbortController()
  readonly #partitions = new Map<string, Partition>()
  /** By name of the claim. */
  readonly #claims = new Map<string, ObjectOwner>()
  /** Partition by Tenant and by WorkerPool: their label. */
  readonly #tenants = new Map<string, string>()
  readonly #pools = new Map<string, string>()
  readonly #log: (message: string, error?: unknown) => void
  readonly #onPartitions: (partitions: readonly Partition[]) => void
  #roles: GatewayMap['partitions'] = new Map()
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

  get epoch(): number {
    return this.#epoch
  }

  get partitions(): GatewayMap['partitions'] {
    return this.#roles
  }

  partitionOf(table: string, name: string): string | undefined {
    return this.#claims.get(claimName(table, name))?.partition
  }

  tenantOf(namespace: string): string | undefined {
    return this.#claims.get(claimName('namespaces', namespace))?.tenant
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

  /** Resolves when everything was read once. @throws the reason of `signal`. */
  async start(signal?: AbortSignal): Promise<void> {
    const byLabel = (target: Map<string, string>) => ({
      clear: () => target.clear(),
      set({ metadata: { name, labels: own } }: Labeled) {
        const partition = own?.[partitionLabel]
        if (partition === undefined) target.delete(name)
        else target.set(name, partition)
      },
      remove: ({ metadata }: Labeled) => void target.delete(metadata.name),
    })
    const reading = [
      this.#watch(partitionResource, {
        clear: () => this.#partitions.clear(),
        set: partition => void this.#partitions.set(partition.metadata.name, partition as Partition),
        remove: ({ metadata }) => void this.#partitions.delete(metadata.name),
        changed: version => {
          this.#roles = new Map([...this.#partitions.values()].map(({ metadata, spec }) => [metadata.name, { roles: new Set(spec.roles) }]))
          // Only what is merged depends on it: a page token continues a list over the same partitions.
          this.#epoch = Number(version)
          this.#onPartitions([...this.#partitions.values()])
        },
      }),
      this.#watch(nameClaimResource, {
        clear: () => this.#claims.clear(),
        set: claim => void this.#claims.set(claim.metadata.name, ownerOf(claim as NameClaim)),
        remove: ({ metadata }) => void this.#claims.delete(metadata.name),
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

  /**
   * Claims the name for the partition: a conditional creation at home, so that of two gateways one succeeds.
   * @throws {StatusError} AlreadyExists if another partition has the name, ServiceUnavailable if home does not answer.
   */
  async claim(table: string, name: string, { partition, tenant }: ObjectOwner): Promise<void> {
    const metadata = { name: claimName(table, name) }
    const claims = this.#client.resource(nameClaimResource)
    try {
      const created = await claims.create({ metadata, spec: { resource: table, name, partition, ...(tenant && { tenant }) } })
      this.#claims.set(created.metadata.name, ownerOf(created))
    } catch (error) {
      if (!isReason(error, 'AlreadyExists'))
        throw new StatusError(
          'ServiceUnavailable',
          `the name of ${table} ${JSON.stringify(name)} cannot be claimed, because home does not answer: ${(error as Error).message}`,
          { cause: error },
        )
      const existing = await claims.get(metadata.name)
      this.#claims.set(metadata.name, ownerOf(existing))
      // A gateway that ended after its claim, and before the creation: the object decides.
      if (existing.spec.partition !== partition) throw alreadyExists({ group: '', plural: table }, name)
    }
  }

  /** Reads what a partition has denied, from home. */
  async refresh(): Promise<void> {
    const { items } = await this.#client.resource(nameClaimResource).listAll({})
    this.#claims.clear()
    for (const claim of items) this.#claims.set(claim.metadata.name, ownerOf(claim))
  }

  #watch<Body>(
    resource: Resource<Body>,
    target: { clear(): void; set(object: KubeObject<Body>): void; remove(object: KubeObject<Body>): void; changed?(version: string): void },
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    void listWatch(this.#client, resource, {
      signal: this.#abort.signal,
      onReplace: (items, version) => {
        target.clear()
        for (const item of items) target.set(item)
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

const ownerOf = ({ spec: { partition, tenant } }: NameClaim): ObjectOwner => ({ partition, ...(tenant && { tenant }) })
