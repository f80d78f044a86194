import { setTimeout as delay } from 'node:timers/promises'
import type { Run } from '../../api/index.ts'
import { type OpenRunAccess, type RunAccess, type RunSelection, StoreConnections } from '../../execution/worker/index.ts'
import { type PartitionObject, partitionResource, systemNamespaces } from '../../gateway/index.ts'
import { type Client, createClient } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { partitionNumberOf } from '../../kubernetes/util/index.ts'
import { readEndpoint } from '../discovery/index.ts'
import { TokenReviewWarmup } from './token-review-warmup.ts'

export type PartitionAccessOptions = {
  /** Of the gateway. */
  readonly client: Client
  /** Credential for the API and the stores of every partition; a function if it changes. */
  readonly token: string | (() => string)
  /** PEM of the authority of the gateway's certificate. */
  readonly caCertificate: string | undefined
  /** A connection without a Run is closed after this time. Default: 60,000. */
  readonly idleMs?: number
  /** All Partitions, read before. Default: none; they are read for the first Run. */
  readonly partitions?: readonly PartitionObject[]
  /** How long a partition that cannot be found is waited for. Default: 30,000. */
  readonly patienceMs?: number
  readonly log: { warn(fields: object, message: string): void }
}

/** A partition that has Runs for this worker. */
type Connection = {
  readonly server: string
  readonly caCertificate: string | undefined
  readonly opened: Promise<Pick<RunAccess, 'client' | 'storeUrl' | 'storeCaCertificate' | 'storeAgent'> & { close(): Promise<void> }>
  runs: number
  idle: NodeJS.Timeout | undefined
}

const defaultIdleMs = 60_000
const defaultPatienceMs = 30_000
const retryMs = 1_000
/** How long home may take to return a Partition that is known. */
const readTimeoutMs = 2_000

/**
 * The Runs that a worker reads where there are partitions: those of Tenants, and those of `default`, which are at home. Apart, because the events of several
 * partitions wait for each other: those of Tenants must not wait for home. Runs in other system namespaces are not executed.
 */
export const partitionRuns: readonly RunSelection[] = [
  { fieldSelector: systemNamespaces.map(namespace => `metadata.namespace!=${namespace}`).join(',') },
  { namespace: 'default' },
]

/** All Partitions of a gateway or a partition; none of another server. */
export async function readPartitions(client: Client): Promise<readonly PartitionObject[]> {
  try {
    return (await client.resource(partitionResource).listAll({})).items
  } catch (error) {
    // Another server has no such kind, or no one may read it.
    if (isReason(error, 'NotFound', 'Forbidden')) return []
    throw error
  }
}

/**
 * The connections of a worker to the partitions that have its Runs: one client and one set of connections to the stores for each, from its first Run until it
 * has had none for a minute. Which partition has a Run is in its resource version.
 */
export class PartitionAccess {
  readonly #options: PartitionAccessOptions
  readonly #connections = new Map<string, Connection>()
  /** As it was read last, by number. */
  readonly #known = new Map<number, PartitionObject>()
  #warmup: TokenReviewWarmup | undefined

  constructor(options: PartitionAccessOptions) {
    this.#options = options
    for (const partition of options.partitions ?? []) this.#known.set(partition.spec.number, partition)
  }

  /** @throws if no Partition has the Run's number, or it cannot be read in time. */
  readonly open: OpenRunAccess = async run => {
    const { patienceMs = defaultPatienceMs, log } = this.#options
    const deadlineMs = performance.now() + patienceMs
    for (;;) {
      try {
        return await this.#open(run)
      } catch (error) {
        if (performance.now() + retryMs > deadlineMs) throw error
        log.warn(
          { run: `${run.metadata.namespace}/${run.metadata.name}`, error: String(error) },
          'the partition of a run is not found, retrying',
        )
        await delay(retryMs)
      }
    }
  }

  /** Shows the token to every partition of Tenants before its first Run, until `close`. */
  warmUp(): void {
    const { caCertificate: common, log } = this.#options
    this.#warmup ??= new TokenReviewWarmup({
      log,
      token: () => this.#token,
      partitions: () =>
        [...this.#known.values()].flatMap(({ metadata: { name }, spec: { roles, server, caCertificate = common } }) =>
          roles.includes('Tenants') && server !== undefined ? [{ name, server, caCertificate }] : [],
        ),
      refresh: () => this.#readAll(AbortSignal.timeout(readTimeoutMs)),
    })
    this.#warmup.start()
  }

  get #token(): string {
    const { token } = this.#options
    return typeof token === 'function' ? token() : token
  }

  /** Partitions that are connected. */
  get size(): number {
    return this.#connections.size
  }

  async close(): Promise<void> {
    await this.#warmup?.close()
    const connections = [...this.#connections.values()]
    this.#connections.clear()
    for (const { idle } of connections) clearTimeout(idle)
    await Promise.all(connections.map(({ opened }) => opened.then(each => each.close()).catch(() => {})))
  }

  async #open(run: Run): Promise<RunAccess> {
    const { metadata, spec } = await this.#find(partitionNumberOf(run.metadata.resourceVersion))
    const { server, caCertificate = this.#options.caCertificate } = spec
    if (server === undefined) throw new Error(`Partition ${metadata.name} has no address: its server has never been started`)
    let connection = this.#connections.get(metadata.name)
    // Its server was started again with another address.
    if (!connection || connection.server !== server || connection.caCertificate !== caCertificate) {
      connection = { server, caCertificate, opened: this.#connect(server, caCertificate), runs: 0, idle: undefined }
      connection.opened.catch(() => {})
      this.#connections.set(metadata.name, connection)
    }
    const { opened } = connection
    clearTimeout(connection.idle)
    connection.runs++
    try {
      const { client, storeUrl, storeCaCertificate, storeAgent } = await opened
      return { client, storeUrl, storeCaCertificate, storeAgent, release: () => this.#release(metadata.name, connection) }
    } catch (error) {
      this.#drop(metadata.name, connection)
      throw error
    }
  }

  /** Read for each Run: the address may have changed. While home, which has the Partitions, does not answer, the last one stays valid. */
  async #find(number: number): Promise<PartitionObject> {
    const known = this.#known.get(number)
    const found = known ? await this.#readAgain(known) : undefined
    if (found?.spec.number === number) return found
    await this.#readAll()
    const listed = this.#known.get(number)
    if (!listed) throw new Error(`no Partition has number ${number}, which is that of the resource version of the Run`)
    return listed
  }

  async #readAll(signal?: AbortSignal): Promise<void> {
    const { items } = await this.#options.client.resource(partitionResource).listAll({ signal })
    this.#known.clear()
    for (const partition of items) this.#known.set(partition.spec.number, partition)
  }

  async #readAgain(known: PartitionObject): Promise<PartitionObject | undefined> {
    const { client, log } = this.#options
    const { name } = known.metadata
    try {
      const read = await client.resource(partitionResource).getOrUndefined(name, { signal: AbortSignal.timeout(readTimeoutMs) })
      if (read) this.#known.set(read.spec.number, read)
      return read
    } catch (error) {
      log.warn({ partition: name, error: String(error) }, 'a Partition cannot be read, and is used as it was')
      return known
    }
  }

  async #connect(server: string, caCertificate: string | undefined) {
    const { token } = this.#options
    const cluster = { server, caCertificate, token }
    const client = await createClient({ cluster, userAgent: 'oarlock-worker', fieldManager: 'oarlock', connections: 2 })
    try {
      // Stores that run in the process of the API server have published no address.
      const stores = (await readEndpoint(client, 'stores')) ?? { url: server, caCertificate }
      const connections = new StoreConnections(stores.url, stores.caCertificate)
      return {
        ...{ client, storeUrl: stores.url, storeCaCertificate: stores.caCertificate, storeAgent: connections.agent },
        close: async () => {
          connections.destroy()
          await client.close()
        },
      }
    } catch (error) {
      await client.close()
      throw error
    }
  }

  #release(name: string, connection: Connection): void {
    connection.runs--
    if (connection.runs > 0) return
    connection.idle = setTimeout(() => this.#drop(name, connection), this.#options.idleMs ?? defaultIdleMs)
    connection.idle.unref()
  }

  #drop(name: string, connection: Connection): void {
    if (this.#connections.get(name) === connection) this.#connections.delete(name)
    void connection.opened.then(each => each.close()).catch(() => {})
  }
}
