import { runResource, stackResource } from '../api/index.ts'
import type { Endpoint, PartitionAddress } from '../app/index.ts'
import { discovery } from '../app/index.ts'
import {
  type AccessOptions,
  type Client,
  ConnectionError,
  clusterCaCertificate,
  createClient,
  hasOnlyClientCertificate,
  type RequestOptions,
  type Response,
  type StreamResponse,
  WrappedClient,
} from '../kubernetes/client/index.ts'
import { formatDuration, isReason } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { certificateError, type RoutedRole, roleError } from './role-error.ts'

/** The role that serves each path. */
const roles = [
  ['/state/', 'stores'],
  ['/logs/', 'stores'],
  ['/queue', 'queue'],
] as const

/**
 * Sends requests for states, logs and the queue to the role that has published its address, with the same credentials. A role that has
 * not is on the address of the API server, as in `oarlock up`. Of several partitions, the stores of the one that has the Stack or Run.
 */
export class RoutedClient extends WrappedClient {
  readonly #access: AccessOptions
  /** By role, and by partition where there are several. */
  readonly #routes = new Map<string, Promise<Route>>()
  /** By namespace. */
  readonly #partitions = new Map<string, Promise<PartitionAddress | undefined>>()

  constructor(inner: Client, access: AccessOptions) {
    super(inner)
    this.#access = access
  }

  override async request(options: RequestOptions): Promise<Response> {
    const role = roleOf(options.path)
    if (!role) return await this.inner.request(options)
    return await this.#send(role, options.path, (client, signal) =>
      client.request({ ...options, signal: anySignal(options.signal, signal) }),
    )
  }

  override async stream(options: RequestOptions & { idleTimeoutMs?: number | undefined }): Promise<StreamResponse> {
    const role = roleOf(options.path)
    return role ? await this.#send(role, options.path, client => client.stream(options)) : await this.inner.stream(options)
  }

  override async close(): Promise<void> {
    const routes = await Promise.allSettled(this.#routes.values())
    await Promise.all(routes.map(route => (route.status === 'fulfilled' ? route.value.client.close() : undefined)))
    await this.inner.close()
  }

  async #send<T>(role: RoutedRole, path: string, send: (client: Client, signal: AbortSignal | undefined) => Promise<T>): Promise<T> {
    const { client, url } = await this.#routeTo(role, path)
    // A process that is paused accepts connections and never answers.
    const timeout = role === 'queue' && url !== undefined ? AbortSignal.timeout(queueTimeoutMs) : undefined
    try {
      return await send(client, timeout)
    } catch (error) {
      const code = timeout?.aborted ? `no answer within ${formatDuration(queueTimeoutMs)}` : undefined
      throw await roleError(error, role, { url, code }, this.inner)
    }
  }

  async #routeTo(role: RoutedRole, path: string): Promise<Route> {
    const partition = role === 'stores' ? await this.#partitionOf(path) : undefined
    const key = `${role} ${partition?.name ?? ''}`
    const known = this.#routes.get(key)
    if (known) return await known
    const found = this.#connect(role, partition)
    this.#routes.set(key, found)
    return await found
  }

  /** Undefined for the one that this client is connected to, and where there are none. */
  #partitionOf(path: string): Promise<PartitionAddress | undefined> {
    const [, root, namespace = '', name = ''] = path.split(/[/?]/).map(decodeURIComponent)
    const known = this.#partitions.get(namespace)
    if (known) return known
    const found = this.#readPartition(root === 'logs' ? 'run' : 'stack', { namespace, name })
    this.#partitions.set(namespace, found)
    return found
  }

  async #readPartition(
    kind: 'run' | 'stack',
    { namespace, name }: { namespace: string; name: string },
  ): Promise<PartitionAddress | undefined> {
    const { findEntry, isSamePartition, readPartitionOf } = await discovery()
    const orNone = (error: unknown) => (isReason(error, 'NotFound', 'Forbidden') ? undefined : Promise.reject(error))
    const object = kind === 'run' ? this.inner.resource(runResource) : this.inner.resource(stackResource)
    // A version has the number of the partition that assigned it. Without the object, the stores that are published here give the reason.
    const [found, entry] = await Promise.all([
      object.get(name, { namespace }).then(({ metadata }) => metadata.resourceVersion, orNone),
      findEntry(this.inner, 'stores').catch(orNone),
    ])
    if (found === undefined || (entry && isSamePartition(found, entry.metadata.resourceVersion))) return undefined
    return await readPartitionOf(this.inner, found)
  }

  async #connect(role: RoutedRole, partition: PartitionAddress | undefined): Promise<Route> {
    if (partition && partition.server !== this.inner.server) return await this.#connectIn(role, partition)
    const { readEndpoint } = await discovery()
    const endpoint = await readEndpoint(this.inner, role)
    if (!endpoint) return { client: this.inner, url: undefined }
    return await this.#open(role, endpoint)
  }

  /** The stores of a partition are published there, and not at home, which the gateway reads. */
  async #connectIn(role: RoutedRole, { name, server, caCertificate }: PartitionAddress): Promise<Route> {
    const { readEndpoint } = await discovery()
    const ca = caCertificate ?? (await clusterCaCertificate(this.#access))
    const there = await createClient({ ...this.#access, endpoint: { server, caCertificate: ca }, userAgent: 'oarlock-cli' })
    try {
      const endpoint = await readEndpoint(there, role)
      if (endpoint) return await this.#open(role, endpoint)
    } catch (cause) {
      if (!(cause instanceof ConnectionError)) throw cause
      throw new CliError(`partition ${JSON.stringify(name)} does not answer at ${server} (${cause.code})`, {
        ...{ exitCode: exitCodes.unreachable, cause },
        hint: 'states, logs and plans are read from the partition itself and not through the gateway: run the command where its address is reachable',
      })
    } finally {
      await there.close()
    }
    throw new CliError(`the stores of partition ${JSON.stringify(name)} have not published an address`, {
      exitCode: exitCodes.unreachable,
      hint: `is "oarlock stores" running with the kubeconfig of ${name}?`,
    })
  }

  async #open(role: RoutedRole, { url, caCertificate }: Endpoint): Promise<Route> {
    if (await hasOnlyClientCertificate(this.#access)) throw certificateError(role)
    const client = await createClient({ ...this.#access, endpoint: { server: url, caCertificate }, userAgent: 'oarlock-cli' })
    return { client, url }
  }
}

/** The queue is read from memory: a process that needs longer is paused or overloaded. */
const queueTimeoutMs = 3_000

const anySignal = (...signals: (AbortSignal | undefined)[]): AbortSignal | undefined => {
  const present = signals.filter(signal => signal !== undefined)
  return present.length < 2 ? present[0] : AbortSignal.any(present)
}

/** Where the requests for a role go; `url` is undefined for the API server. */
type Route = { readonly client: Client; readonly url: string | undefined }

const roleOf = (path: string) => roles.find(([prefix]) => path.startsWith(prefix))?.[1]
