import type { Duplex } from 'node:stream'
import { badRequest, StatusError } from '../kubernetes/object/index.ts'
import { mayUpgrade, type ResourceRoute, readRoute } from '../kubernetes/object/route.ts'
import { joinConnections, StreamLimiter } from '../kubernetes/util/index.ts'
import type { Partition, UpgradeAnswer } from './partition/index.ts'
import { type ClientRequest, endWithCredential, type GatewayUser, streamCheckEveryMs } from './request/index.ts'
import { findNode, findRoute, type GatewayMap, type RoutedRequest, sendToOwner } from './routing/index.ts'

const keepAliveMs = 30_000
/** What the two ends of a stream agree on. */
const upgradeHeaders = [
  ...['connection', 'upgrade', 'x-stream-protocol-version', 'user-agent', 'content-length'],
  ...['sec-websocket-key', 'sec-websocket-version', 'sec-websocket-extensions'],
  // The partition decides: without them the request would be carried out as its sender.
  ...['impersonate-user', 'impersonate-group', 'impersonate-uid'],
]
const answerHeaders = [
  ...['connection', 'upgrade', 'x-stream-protocol-version'],
  ...['sec-websocket-accept', 'sec-websocket-protocol', 'sec-websocket-extensions'],
]
const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'

export type PodStreamsOptions = {
  authenticate(request: ClientRequest): Promise<GatewayUser | undefined>
  map(): GatewayMap
  refreshMap(namespace: string, epoch: number): Promise<void>
  partitionsEpoch(): number
  lookUp(table: string, name: string): Promise<void>
  readonly log: (message: string, error?: unknown) => void
}

/**
 * Logs of Pods, and streams into them. A Pod is in the partition of its Tenant, its Node in another one: the partition of the Pod decides about the rights
 * of the user, names the Node that it does not have, and connects to its kubelet at the address that the gateway brings. So the gateway needs no
 * right to read Pods, and learns the Node only for a user who may have the stream.
 */
export class PodStreams {
  readonly #options: PodStreamsOptions
  readonly #connection: (partition: string) => Partition
  readonly #clients = new Set<Duplex>()
  readonly #limiter = new StreamLimiter()

  /** @param connection throws a StatusError if the partition has no address. */
  constructor(options: PodStreamsOptions, connection: (partition: string) => Partition) {
    this.#options = options
    this.#connection = connection
  }

  /** Counts a log or a stream; the returned function must be called when it ends. @throws {StatusError} TooManyRequests. */
  open({ name }: GatewayUser): () => void {
    const close = this.#limiter.open(name)
    if (typeof close === 'string') throw new StatusError('TooManyRequests', close, { details: { retryAfterSeconds: 1 } })
    return close
  }

  /** Serves a request to upgrade its connection. Never throws. */
  async upgrade(request: ClientRequest, client: Duplex, head: Buffer): Promise<void> {
    const abort = new AbortController()
    const onClose = () => abort.abort()
    client.once('close', onClose)
    this.#clients.add(client)
    client.once('close', () => this.#clients.delete(client))
    client.on('error', () => client.destroy())
    try {
      const user = await this.#options.authenticate(request)
      if (!user) throw new StatusError('Unauthorized', 'Unauthorized')
      // Its close event has passed: it would never be uncounted.
      if (client.destroyed) return
      const close = this.open(user)
      client.once('close', close)
      const answer = await this.#ask(request, user, abort.signal)
      if ('body' in answer) return await sendAnswer(answer, client)
      const { socket, head: first } = answer
      // From here on each end closes the other one.
      client.off('close', onClose)
      if (client.destroyed) {
        socket.destroy()
        return
      }
      for (const each of [client, socket])
        if ('setKeepAlive' in each) (each as import('node:net').Socket).setKeepAlive(true, keepAliveMs).setNoDelay(true)
      client.write(`HTTP/1.1 101 Switching Protocols\r\n${headerLines(answer.headers, answerHeaders)}\r\n`)
      joinConnections({ socket: client, head }, { socket, head: first })
      const { authenticate, log } = this.#options
      const stopChecks = endWithCredential({
        ...{ request, user, authenticate, everyMs: streamCheckEveryMs },
        end() {
          client.destroy()
          socket.destroy()
        },
        onError: error => log('the credential of an open stream cannot be checked', error),
      })
      client.once('close', stopChecks)
    } catch (error) {
      if (!client.destroyed) sendStatus(client, error, internal => this.#options.log('a request to upgrade a connection failed', internal))
    }
  }

  close(): void {
    for (const client of this.#clients) client.destroy()
  }

  async #ask(request: ClientRequest, user: GatewayUser, signal: AbortSignal): Promise<UpgradeAnswer> {
    const { method = 'GET', url = '/' } = request
    const route = readRoute(url.split('?')[0] ?? '')
    if (route.type === 'path' || !mayUpgrade(request)) throw badRequest('this path does not support an upgrade of the connection')
    const options = this.#options
    const connection = this.#connection
    const headers = { ...picked(request.headers, upgradeHeaders), ...withoutToken(request.headers['sec-websocket-protocol']) }
    const owner = () => ownerOf(route, options)
    return (await sendToOwner<UpgradeAnswer>(await owner(), {
      send: (partition, more) => connection(partition).upgrade({ method, path: url, user, headers: { ...headers, ...more }, signal }),
      again: async epoch => {
        await options.refreshMap(route.namespace, epoch)
        return await owner()
      },
      isCurrent: epoch => options.partitionsEpoch() >= epoch,
      namespace: route.namespace,
      nodeAddress: node => findNode(node, { map: options.map(), connection, user, signal }),
    })) as UpgradeAnswer
  }
}

async function ownerOf(route: ResourceRoute, options: PodStreamsOptions): Promise<string> {
  const request: RoutedRequest = { ...route, verb: 'get', scope: 'Namespaced' }
  const target = await findRoute(request, options)
  if (target.kind !== 'one') throw new Error('bug: a pod is in one partition')
  return target.partition
}

/** Of a Status: the partition has not switched protocols. */
async function sendAnswer({ status, headers, body }: Extract<UpgradeAnswer, { body: unknown }>, client: Duplex): Promise<void> {
  client.write(
    `HTTP/1.1 ${status} ${body.statusMessage || 'Rejected'}\r\n${headerLines(headers, ['content-type', 'retry-after'])}Connection: close\r\n\r\n`,
  )
  for await (const chunk of body) client.write(chunk)
  client.end(() => client.destroy())
}

function sendStatus(client: Duplex, error: unknown, onInternal: (error: unknown) => void): void {
  const known = error instanceof StatusError ? error : new StatusError('InternalError', 'the gateway failed: see its log')
  if (known !== error) onInternal(error)
  const { retryAfterSeconds } = known.details ?? {}
  const body = JSON.stringify(known.toStatus())
  const lines = [
    `HTTP/1.1 ${known.code} ${known.reason}`,
    ...['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`, 'Connection: close'],
    ...(retryAfterSeconds === undefined ? [] : [`Retry-After: ${retryAfterSeconds}`]),
  ]
  client.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => client.destroy())
}

function picked(headers: ClientRequest['headers'], names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap(name => (headers[name] === undefined ? [] : [[name, String(headers[name])]])))
}

const headerLines = (headers: ClientRequest['headers'], names: readonly string[]) =>
  Object.entries(picked(headers, names))
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')

/** Browsers send their token so. No credential of a client reaches a partition. */
function withoutToken(protocols: string | undefined): Record<string, string> {
  if (protocols === undefined) return {}
  const kept = protocols.split(',').map(each => each.trim())
  return { 'sec-websocket-protocol': kept.filter(each => !each.startsWith(tokenProtocol)).join(', ') }
}
