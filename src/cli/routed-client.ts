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
 * not is on the address of the API server, as in `oarlock up`. Of several partitions, the role of the one that has the Stack, the Run, or
 * the namespace of a queue.
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
    return await this.#send(role, options, (client, signal) => client.request({ ...options, signal: anySignal(options.signal, signal) }))
  }

  override async stream(options: RequestOptions & { idleTimeoutMs?: number | undefined }): Promise<StreamResponse> {
    const role = roleOf(options.path)
    return role ? await this.#send(role, options, client => client.stream(options)) : await this.inner.stream(options)
  }

  override async close(): Promise<void> {
    const routes = await Promise.allSettled(this.#routes.values())
    await Promise.all(routes.map(route => (route.status === 'fulfilled' ? route.value.client.close() : undefined)))
    await this.inner.close()
  }

  async #send<T>(
    role: RoutedRole,
    request: RequestOptions,
    send: (client: Client, signal: AbortSignal | undefined) => Promise<T>,
  ): Promise<T> {
    const { client, url } = await this.#routeTo(role, request)
    // A process that is paused accepts connections and never answers.
    const timeout = role === 'queue' && url !== undefined ? AbortSignal.timeout(queueTimeoutMs) : undefined
    try {
      return await send(client, timeout)
    } catch (error) {
      const code = timeout?.aborted ? `no answer within ${formatDuration(queueTimeoutMs)}` : undefined
      throw await roleError(error, role, { url, code }, this.inner)
    }
  }

  async #routeTo(role: RoutedRole, request: RequestOptions): Promise<Route> {
    const partition = await this.#partitionOf(request)
    const key = `${role} ${partition?.name ?? ''}`
    const known = this.#routes.get(key)
    if (known) return await known
    const found = this.#connect(role, partition)
    this.#routes.set(key, found)
    return await found
  }

  /** Undefined for the one that this client is connected to, and where there are none. */
  async #partitionOf({ path, query }: RequestOptions): Promise<PartitionAddress | undefined> {
    const [, root, ...names] = path.split(/[/?]/).map(decodeURIComponent)
    const [namespace, name = ''] = root === 'queue' ? [query?.namespace?.toString()] : names
    // Backups are at /state/backup and /logs/backup.
    if (namespace === undefined || (root !== 'queue' && name === '')) return undefined
    const known = this.#partitions.get(namespace)
    if (known) return await known
    const found = this.#readPartition(root === 'state' ? 'stacks' : 'runs', { namespace, name }).catch((cause: unknown) => {
      if (!isReason(cause, 'ServiceUnavailable')) throw cause
      throw new CliError(`the partition of namespace ${namespace} cannot be found: ${cause.message}`, {
        ...{ exitCode: exitCodes.unreachable, cause },
        hint: 'use the kubeconfig of the partition',
      })
    })
    this.#partitions.set(namespace, found)
    return await found
  }

  /** @param of without a name, any of them. */
  async #readPartition(kind: 'runs' | 'stacks', of: { namespace: string; name: string }): Promise<PartitionAddress | undefined> {
    const { findEntry, isSamePartition, readPartitionOf } = await discovery()
    const { namespace, name } = of
    const orNone = (error: unknown) => (isReason(error, 'NotFound', 'Forbidden') ? undefined : Promise.reject(error))
    const objects = this.inner.resource<object>(kind === 'runs' ? runResource : stackResource)
    const reading = name === '' ? objects.list({ namespace, limit: 1 }).then(({ items }) => items[0]) : objects.get(name, { namespace })
    // A version has the number of the partition that assigned it. Without the object, the role that is published here gives the reason.
    const [found, entry] = await Promise.all([
      reading.then(each => each?.metadata.resourceVersion, orNone),
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

  /** The roles of a partition are published there, and not at home, which the gateway reads. */
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
        hint: 'states, logs, plans and queues are read from the partition itself and not through the gateway: run the command where its address is reachable',
      })
    } finally {
      await there.close()
    }
    const [processes, command] = role === 'stores' ? ['stores', 'oarlock stores'] : ['controllers', 'oarlock controller']
    throw new CliError(`the ${processes} of partition ${JSON.stringify(name)} have not published an address`, {
      exitCode: exitCodes.unreachable,
      hint: `is "${command}" running with the kubeconfig of ${name}?`,
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
