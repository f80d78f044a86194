import { HttpTransport } from '../../kubernetes/client/http-transport.ts'
import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { type KubeObject, type Status, StatusError } from '../../kubernetes/object/index.ts'
import { ClientLimiter, type ClientLimits } from '../../kubernetes/util/index.ts'
import { partitionResource } from '../kinds/index.ts'
import { type GatewayUser, userHeaders } from '../request/index.ts'
import { type PartitionAddress, requestUpgrade, type UpgradeAnswer } from './partition-upgrade.ts'
import type { SeenVersion } from './seen-version.ts'
import { batchKeyOf, flowOf, shortRoute, WholeBody } from './short-request.ts'

export type PartitionOptions = PartitionAddress & {
  readonly name: string
}

export type PartitionRequest = {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly user: GatewayUser
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | undefined
  readonly signal?: AbortSignal | undefined
  /** How long to wait for the head of the response; 0: without a limit. Default 60,000. */
  readonly timeoutMs?: number | undefined
}

const defaultTimeoutMs = 60_000
const progressTimeoutMs = 5_000
const rightsTimeoutMs = 10_000
/** Responses on one connection wait for each other: up to this many requests at a time have one of their own. */
const preferredConnections = 64
/**
 * Short requests of one user that have a connection of their own; further ones wait. A quarter of the connections: what waits for a webhook, or for an aggregated
 * API of a kube-apiserver, leaves some to the others.
 */
const shortLimits: ClientLimits = { concurrent: 1_024, concurrentPerClient: 16, waitingPerClient: 10_000, waiting: 50_000 }

/** The server of a partition has another address: what was in progress has ended, and can be sent again. */
export class PartitionMovedError extends StatusError {
  constructor(partition: string) {
    super('ServiceUnavailable', `partition ${JSON.stringify(partition)} has another address; retry`, { details: { retryAfterSeconds: 1 } })
  }
}

/** The connections to one API server behind the gateway. Every request carries its user, and the highest resource version seen. */
export class Partition {
  readonly name: string
  #transport: HttpTransport
  readonly #certificate: { readonly cert: string; readonly key: string }
  #options: PartitionOptions
  readonly #seen: SeenVersion
  readonly #shortRequests = new ClientLimiter(shortLimits)
  #isComparable = false
  /** Whether the server is one of Oarlock, which starts the reads of a user in the order of their arrival, and none of which waits for anything else. */
  #answersInOrder = false
  #mapEpoch = 0

  constructor(options: PartitionOptions, seen: SeenVersion) {
    const { name, server, caCertificate, certificate, key } = options
    this.#options = options
    this.name = name
    this.#transport = transportTo(name, { server, caCertificate })
    this.#certificate = { cert: certificate, key }
    this.#seen = seen
  }

  /**
   * As {@link stream}, with less work if the request and its response are short.
   * @throws {StatusError} ServiceUnavailable naming the partition if it cannot be reached.
   */
  async send(request: PartitionRequest): Promise<TransportStreamResponse> {
    const { method, path, user, headers = {}, body, signal, timeoutMs = defaultTimeoutMs } = request
    const route = shortRoute(method, path, headers, body)
    if (!route) return await this.stream(request)
    // A compressed response is no text.
    const { 'accept-encoding': _, ...rest } = headers
    const seen = this.#seen.value
    const all = { ...rest, ...userHeaders(user), ...(seen > 0 && { 'x-oarlock-seen-version': String(seen) }) }
    const text = body && Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
    const batchKey = this.#answersInOrder ? batchKeyOf(method, route, user) : undefined
    const ask = () =>
      this.#transport.request({ method, path, headers: all, body: text, timeoutMs, isShort: true, batchKey, signal }, this.#certificate)
    try {
      const response = await (batchKey === undefined ? this.#shortRequests.run(flowOf(route, user), ask) : ask())
      const version = response.headers['x-oarlock-version']
      if (version !== undefined) this.#answersInOrder = true
      this.#seen.raise(version)
      return { status: response.status, headers: response.headers, body: new WholeBody(response.body) }
    } catch (error) {
      throw signal?.aborted ? error : this.#unavailable(error)
    }
  }

  /**
   * Sends a request of any length; the body of the response is read as it arrives.
   * @throws {StatusError} ServiceUnavailable naming the partition if it cannot be reached.
   */
  async stream({
    method,
    path,
    user,
    headers,
    body,
    signal,
    timeoutMs = defaultTimeoutMs,
  }: PartitionRequest): Promise<TransportStreamResponse> {
    const seen = this.#seen.value
    const all = { ...headers, ...userHeaders(user), ...(seen > 0 && { 'x-oarlock-seen-version': String(seen) }) }
    try {
      const response = await this.#transport.stream(
        { method, path, headers: all, body, signal, timeoutMs, idleTimeoutMs: 0 },
        this.#certificate,
      )
      this.#seen.raise(response.headers['x-oarlock-version'])
      return response
    } catch (error) {
      throw signal?.aborted ? error : this.#unavailable(error)
    }
  }

  /**
   * The partition reports that everything up to a resource version was sent, on the watches with these ids too. Returns its current version, which is
   * at least `version`.
   */
  async progress(user: GatewayUser, version: number, watches: readonly string[] = [], signal?: AbortSignal): Promise<number> {
    const query = new URLSearchParams(version > 0 ? { version: String(version) } : {})
    for (const id of watches) query.append('watch', id)
    let response: { status: number; body: string }
    try {
      response = await this.#transport.request(
        {
          ...{ method: 'GET', path: `/partition/progress?${query}`, headers: userHeaders(user) },
          ...{ timeoutMs: progressTimeoutMs, isShort: true, signal },
        },
        this.#certificate,
      )
    } catch (error) {
      throw signal?.aborted ? error : this.#unavailable(error)
    }
    if (response.status === 404 || response.status === 403) throw notComparable(this.name)
    const { resourceVersion, mapEpoch, message } = readJson(response.body) as {
      resourceVersion?: string
      mapEpoch?: number
      message?: string
    }
    if (response.status !== 200 || resourceVersion === undefined) throw this.#unavailable(new Error(message ?? `status ${response.status}`))
    this.#seen.raise(resourceVersion)
    this.#isComparable = true
    if (typeof mapEpoch === 'number') this.#mapEpoch = Math.max(this.#mapEpoch, mapEpoch)
    return Number(resourceVersion)
  }

  /**
   * The copy of a Partition that this one has.
   * @throws {StatusError} MethodNotAllowed for a kube-apiserver, which keeps no copies; ServiceUnavailable naming the partition if it does not answer.
   */
  async copyOf(user: GatewayUser, partition: string): Promise<KubeObject | undefined> {
    await this.requireComparable(user)
    const path = `/apis/${partitionResource.group}/${partitionResource.version}/partitions/${encodeURIComponent(partition)}`
    const response = await this.send({ method: 'GET', path, user, timeoutMs: progressTimeoutMs })
    const chunks: Uint8Array[] = []
    for await (const chunk of response.body) chunks.push(chunk)
    if (response.status === 404) return undefined
    if (response.status !== 200) throw this.#unavailable(new Error(`status ${response.status}`))
    return readJson(Buffer.concat(chunks).toString()) as KubeObject
  }

  /** Of the Partitions, the newest version of home that it has known; 0 if none. */
  get mapEpoch(): number {
    return this.#mapEpoch
  }

  /** The highest resource version that any partition has told this gateway. */
  get seenVersion(): number {
    return this.#seen.value
  }

  /** Whether it is known that its lists and watches can be merged. */
  get isComparable(): boolean {
    return this.#isComparable
  }

  /**
   * Its resource versions are those of Oarlock, so that its lists and watches can be merged with those of others. Asked once.
   * @throws {StatusError} MethodNotAllowed for a kube-apiserver, ServiceUnavailable.
   */
  async requireComparable(user: GatewayUser, signal?: AbortSignal): Promise<void> {
    if (!this.#isComparable) await this.progress(user, 0, [], signal)
  }

  /**
   * Which of these users may send a GET of these URLs.
   * @throws {StatusError} ServiceUnavailable naming the partition if it does not answer.
   */
  async rights(user: GatewayUser, checks: readonly { readonly user: GatewayUser; readonly url: string }[]): Promise<readonly boolean[]> {
    let response: { status: number; body: string }
    try {
      response = await this.#transport.request(
        {
          ...{ method: 'POST', path: '/partition/rights', headers: { ...userHeaders(user), 'content-type': 'application/json' } },
          ...{ body: JSON.stringify({ checks }), timeoutMs: rightsTimeoutMs, isShort: true },
        },
        this.#certificate,
      )
    } catch (error) {
      throw this.#unavailable(error)
    }
    const { allowed, message } = readJson(response.body) as { allowed?: readonly boolean[]; message?: string }
    if (response.status === 200 && allowed?.length === checks.length) return allowed
    throw this.#unavailable(new Error(message ?? `status ${response.status}`))
  }

  /** The server has another address now. Requests in progress fail, and watches continue there. */
  async move(to: Pick<PartitionOptions, 'server' | 'caCertificate'>): Promise<void> {
    const before = this.#transport
    this.#isComparable = false
    this.#answersInOrder = false
    this.#options = { ...this.#options, ...to }
    this.#transport = transportTo(this.name, to)
    await before.close(new PartitionMovedError(this.name))
  }

  /** Where the kubelet of a Node of this partition listens. @throws {StatusError} NotFound, ServiceUnavailable. */
  async kubeletOf(user: GatewayUser, node: string, signal?: AbortSignal): Promise<{ readonly host: string; readonly port: number }> {
    const path = `/partition/kubelet?node=${encodeURIComponent(node)}`
    const request = { method: 'GET', path, headers: userHeaders(user), timeoutMs: progressTimeoutMs, isShort: true, signal }
    const response = await this.#transport.request(request, this.#certificate).catch(error => {
      throw signal?.aborted ? error : this.#unavailable(error)
    })
    if (response.status === 403 || response.headers['content-type']?.includes('text/plain')) throw noKubelets(this.name, node)
    const answer = JSON.parse(response.body) as Status & { host?: string; port?: number }
    if (response.status !== 200) throw StatusError.fromStatus(answer)
    return { host: String(answer.host), port: Number(answer.port) }
  }

  /** Sends a request to switch protocols. @throws {StatusError} ServiceUnavailable naming the partition if it cannot be reached. */
  async upgrade({ method, path, user, headers, signal }: PartitionRequest & { readonly signal: AbortSignal }): Promise<UpgradeAnswer> {
    try {
      return await requestUpgrade(this.#options, { method, path, headers: { ...headers, ...userHeaders(user) }, signal })
    } catch (error) {
      throw signal.aborted ? error : this.#unavailable(error)
    }
  }

  async close(): Promise<void> {
    await this.#transport.close()
  }

  #unavailable(cause: unknown): StatusError {
    if (cause instanceof PartitionMovedError) return cause
    const why = cause instanceof Error ? cause.message : String(cause)
    return new StatusError('ServiceUnavailable', `partition ${JSON.stringify(this.name)} does not answer: ${why}`, { cause })
  }
}

/** An answer that is no JSON is none. */
function readJson(text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

function transportTo(name: string, { server, caCertificate }: Pick<PartitionOptions, 'server' | 'caCertificate'>): HttpTransport {
  return new HttpTransport(
    {
      ...{ server, defaultNamespace: 'default', credentials: { kind: 'none' }, ca: { kind: 'text', text: caCertificate } },
      ...{ insecureSkipTlsVerify: false, source: `partition ${name}` },
    },
    preferredConnections,
  )
}

const notComparable = (name: string) =>
  new StatusError(
    'MethodNotAllowed',
    `partition ${JSON.stringify(name)} is no Oarlock API server, so that its resource versions cannot be compared: lists, watches and deletions over several partitions are not supported with it; name a namespace`,
  )

const noKubelets = (name: string, node: string) =>
  new StatusError(
    'ServiceUnavailable',
    `node ${node} is in partition ${JSON.stringify(name)}, which is no Oarlock API server: its kubelet is reached for pods of the same partition only`,
  )
