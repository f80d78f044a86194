import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import { badRequest, type KubeObject, notFound, StatusError } from '../../object/index.ts'
import { readBoolean } from '../../object/route.ts'
import { joinConnections, type StreamLimiter } from '../../util/index.ts'
import { parseEntry, type Store } from '../storage/index.ts'
import type { Reply } from '../wire/index.ts'
import { kubeletAddress } from './kubelet-address.ts'
import { connectToKubelet, type KubeletAddress, type KubeletCredentials } from './kubelet-connection.ts'
import { kubeletPath, type PodStream } from './kubelet-path.ts'

export type KubeletProxyOptions = {
  store: Store
  /** Undefined if no kubelet has certificates of this server. */
  credentials: () => Promise<KubeletCredentials | undefined>
  streams: StreamLimiter
}

/** What to ask of a kubelet, for whom, and whether that user may still ask. */
export type StreamRequest = {
  readonly namespace: string
  readonly name: string
  readonly stream: PodStream
  readonly query: URLSearchParams
  readonly user: string
  readonly method: string
  readonly headers: IncomingMessage['headers']
  /** Whether a gateway has sent it, which can find a Node that is in another partition, and the Node that it has found. */
  readonly isProxied: boolean
  readonly nodeAddress: KubeletAddress | undefined
  /** False when the credential or the right of the user has ended. */
  readonly revalidate: () => boolean
}

/** As the kubelet's own limit for streams without data. */
const idleTimeoutMs = 4 * 3_600_000
const responseTimeoutMs = 30_000
const revalidateEveryMs = 10_000
const maxErrorBytes = 4_096
/** Of requests: what the two ends of a stream agree on. No credential of a client reaches a kubelet. */
const forwardedHeaders = [
  ...['connection', 'upgrade', 'x-stream-protocol-version', 'user-agent'],
  ...['sec-websocket-key', 'sec-websocket-version', 'sec-websocket-protocol', 'sec-websocket-extensions'],
]
/** Of responses. */
const returnedHeaders = [
  ...['connection', 'upgrade', 'x-stream-protocol-version', 'content-type'],
  ...['sec-websocket-accept', 'sec-websocket-protocol', 'sec-websocket-extensions'],
]
const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'

/** Passes requests for Pods to the kubelets of their Nodes. */
export class KubeletProxy {
  readonly #options: KubeletProxyOptions

  constructor(options: KubeletProxyOptions) {
    this.#options = options
  }

  /** Serves the log of a container. @throws {StatusError} also for the error response of a kubelet. */
  async log(request: StreamRequest, reply: Reply): Promise<void> {
    const target = this.#target(request)
    if (!target) {
      reply.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': 0 })
      reply.end()
      return
    }
    const close = this.#open(request.user)
    try {
      const response = await this.#send({ ...request, method: 'GET', headers: {} }, target, reply)
      const { socket } = response
      const end = () => socket.destroy()
      reply.once('close', end)
      const stopWatching = endWhenInvalid(request, socket, () => reply.destroy())
      try {
        if (reply.destroyed || reply.closed) return
        await copyLog(response, reply)
      } finally {
        stopWatching()
        socket.destroy()
      }
    } finally {
      close()
    }
  }

  /**
   * Connects the client of an upgrade request with the kubelet, which answers it. Returns when the stream is established.
   * @param client nothing has been written to it; it is passed on when the kubelet has accepted.
   * @throws {StatusError} also for the error response of a kubelet.
   */
  async upgrade(request: StreamRequest, client: Duplex, head: Buffer): Promise<void> {
    const target = this.#target(request)
    if (!target) throw badRequest(`pod ${request.name} does not have a host assigned`)
    const close = this.#open(request.user)
    client.once('close', close)
    try {
      const { socket, head: first, headers } = await this.#upgrade(request, target)
      const lines = returnedHeaders.flatMap(name => (headers[name] === undefined ? [] : [`${name}: ${headers[name]}`]))
      client.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`)
      joinConnections({ socket: client, head }, { socket, head: first })
      const stopWatching = endWhenInvalid(request, socket, () => client.destroy())
      client.once('close', stopWatching)
      if (client.destroyed) socket.destroy()
    } catch (error) {
      close()
      throw error
    }
  }

  /** @throws {StatusError} TooManyRequests. */
  #open(user: string): () => void {
    const close = this.#options.streams.open(user)
    if (typeof close === 'string') throw new StatusError('TooManyRequests', close, { details: { retryAfterSeconds: 1 } })
    return close
  }

  /** @throws {StatusError} NotFound, BadRequest, ServiceUnavailable; Misdirected (421) naming a Node that the gateway must find. */
  #target(request: StreamRequest): { address: KubeletAddress; path: string } | undefined {
    const { store } = this.#options
    const { namespace, name, stream, query, isProxied, nodeAddress } = request
    const pod = store.table('pods').get(`${namespace}/${name}`)
    if (!pod) throw notFound({ group: '', plural: 'pods' }, name)
    const found = kubeletPath(parseEntry(pod), stream, query)
    if (!found) return undefined
    const entry = store.table('nodes').get(found.node)
    if (!entry) {
      if (nodeAddress?.node === found.node) return { address: nodeAddress, path: found.path }
      if (isProxied) throw misdirectedNode(name, found.node)
      throw notFound({ group: '', plural: 'nodes' }, found.node)
    }
    const node: KubeObject = parseEntry(entry)
    return { address: { node: found.node, ...kubeletAddress(node) }, path: found.path }
  }

  async #connect(address: KubeletAddress) {
    const credentials = await this.#options.credentials()
    if (!credentials) {
      const why = `no kubelet has certificates of this server, so node ${address.node} cannot be trusted`
      throw new StatusError('ServiceUnavailable', `${why}: issue them with oarlock node-config ${address.node}`)
    }
    return await connectToKubelet(address, credentials)
  }

  /**
   * A request that the kubelet answers with a body. The answer to that for a log that is followed begins with the first line, which may be much later: it is
   * waited for as long as for the next line.
   */
  async #send(
    request: StreamRequest,
    { address, path }: { address: KubeletAddress; path: string },
    reply: Reply,
  ): Promise<IncomingMessage> {
    const timeoutMs = readBoolean(request.query, 'follow') ? idleTimeoutMs : responseTimeoutMs
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      this.#request({ request, address, path, timeoutMs }, reject, sent => {
        const end = () => sent.destroy()
        reply.once('close', end)
        const timer = setInterval(() => request.revalidate() || end(), revalidateEveryMs)
        const stop = () => {
          reply.off('close', end)
          clearInterval(timer)
        }
        sent.once('close', stop)
        sent.once('response', answer => {
          stop()
          resolve(answer)
        })
        if (reply.closed) end()
      })
    })
    if (response.statusCode !== 200) throw await errorOf(response, address.node)
    return response
  }

  /** A request that the kubelet answers by switching protocols. */
  async #upgrade(request: StreamRequest, { address, path }: { address: KubeletAddress; path: string }) {
    type Upgraded = { socket: Duplex; head: Buffer; headers: IncomingMessage['headers'] }
    const answer = await new Promise<Upgraded | IncomingMessage>((resolve, reject) => {
      this.#request({ request, address, path, timeoutMs: responseTimeoutMs }, reject, sent => {
        sent.on('upgrade', ({ headers }, socket, head) => resolve({ socket, head, headers }))
        sent.on('response', resolve)
      })
    })
    if (!('head' in answer)) throw await errorOf(answer, address.node)
    return answer
  }

  #request(
    {
      request: { method, headers },
      address,
      path,
      timeoutMs,
    }: { request: StreamRequest; address: KubeletAddress; path: string; timeoutMs: number },
    reject: (error: unknown) => void,
    listen: (sent: ClientRequest) => void,
  ): void {
    const fail = (why: string) =>
      reject(new StatusError('ServiceUnavailable', `the kubelet of node ${address.node} did not answer: ${why}`))
    this.#connect(address).then(socket => {
      const { request } = process.getBuiltinModule('node:http')
      const sent = request({ createConnection: () => socket, method, path, host: address.node, headers: forwarded(headers) })
      const timer = setTimeout(() => sent.destroy(new Error(`no response within ${timeoutMs / 1_000} s`)), timeoutMs)
      for (const event of ['response', 'upgrade', 'close']) sent.once(event, () => clearTimeout(timer))
      sent.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message))
      listen(sent)
      sent.end()
    }, reject)
  }
}

function forwarded(headers: IncomingMessage['headers']): OutgoingHttpHeaders {
  const sent: OutgoingHttpHeaders = {}
  for (const name of forwardedHeaders) {
    const value = headers[name]
    if (value === undefined) continue
    sent[name] = name === 'sec-websocket-protocol' ? withoutToken(String(value)) : value
  }
  return sent
}

// Browsers send their token so.
function withoutToken(protocols: string): string {
  const kept = protocols.split(',').map(each => each.trim())
  return kept.filter(each => !each.startsWith(tokenProtocol)).join(', ')
}

/** The error response of a kubelet as a Status. Its text is what the kubelet says about the user's own Pod. */
async function errorOf(response: IncomingMessage, node: string): Promise<StatusError> {
  const { statusCode = 502 } = response
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    if (length >= maxErrorBytes) break
  }
  response.socket.destroy()
  const text = Buffer.concat(chunks).subarray(0, maxErrorBytes).toString('utf8').trim()
  if (statusCode >= 300 && statusCode < 400)
    return new StatusError('InternalError', `the kubelet of node ${node} attempted to redirect the request, which is not permitted`, {
      code: 502,
    })
  if (statusCode === 401 || statusCode === 403) {
    const why = `the kubelet of node ${node} rejected the server (${statusCode})`
    return new StatusError('ServiceUnavailable', `${why}: its clientCAFile and authorization must be those of oarlock node-config`)
  }
  if (statusCode === 400) return badRequest(text)
  const reason = statusCode === 404 ? 'NotFound' : 'InternalError'
  return new StatusError(reason, text || `the kubelet of node ${node} answered with ${statusCode}`, {
    code: statusCode >= 400 ? statusCode : 502,
  })
}

/** Copies a response without reading faster than the client does. */
async function copyLog(response: IncomingMessage, reply: Reply): Promise<void> {
  reply.writeHead(200, { 'Content-Type': 'text/plain', 'Cache-Control': 'no-cache, private' })
  reply.flushHeaders()
  await new Promise<void>(resolve => {
    response.on('data', (chunk: Buffer) => {
      if (reply.write(chunk as Uint8Array)) return
      response.pause()
      reply.once('drain', () => response.resume())
    })
    response.once('end', () => {
      reply.end()
      resolve()
    })
    // The log is incomplete.
    response.once('close', () => {
      if (!response.complete) reply.destroy()
      resolve()
    })
    response.on('error', () => {})
    reply.once('close', resolve)
  })
}

const misdirectedNode = (pod: string, node: string) =>
  new StatusError('Misdirected', `pod ${pod} runs on node ${JSON.stringify(node)}, which this partition does not have`, {
    ...{ code: 421, details: { kind: 'nodes', name: node } },
  })

/** Ends a stream that has no data for too long, or whose user may not have it any more. */
function endWhenInvalid({ revalidate }: StreamRequest, kubelet: Duplex, end: () => void): () => void {
  let seenBytes = -1
  let idleMs = 0
  const timer = setInterval(() => {
    const { bytesRead = 0, bytesWritten = 0 } = kubelet as Partial<{ bytesRead: number; bytesWritten: number }>
    idleMs = bytesRead + bytesWritten === seenBytes ? idleMs + revalidateEveryMs : 0
    seenBytes = bytesRead + bytesWritten
    if (idleMs >= idleTimeoutMs || !revalidate()) {
      clearInterval(timer)
      kubelet.destroy()
      end()
    }
  }, revalidateEveryMs)
  timer.unref()
  kubelet.once('close', () => clearInterval(timer))
  return () => clearInterval(timer)
}
