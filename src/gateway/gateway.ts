import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { TransportStreamResponse } from '../kubernetes/client/transport.ts'
import { isReason, StatusError } from '../kubernetes/object/index.ts'
import { type ResourceRoute, readBoolean, readRoute } from '../kubernetes/object/route.ts'
import { mediaType } from '../kubernetes/util/index.ts'
import { awaitDefinition, type CreateOwnedOptions, createdTooLate, createOwned, mustNotCreate } from './creation/index.ts'
import { GatewayMetrics, type RequestTrack } from './gateway-metrics.ts'
import type { GatewayOptions } from './gateway-options.ts'
import { systemNamespaces, tableOf } from './kinds/index.ts'
import { type MergedRequest, MergedRequests } from './merged-requests.ts'
import { discardBody, HomeOrCopy, type Partition, sendAnswer, sendStatus } from './partition/index.ts'
import { PodStreams } from './pod-streams.ts'
import {
  aboutOf,
  anonymousUser,
  atEnd,
  BodyMemory,
  type ClientRequest,
  type ClientResponse,
  endWithCredential,
  forwardedHeaders,
  type GatewayUser,
  gatewayUser,
  RequestLimits,
  readBody,
  readNewObject,
  readTarget,
  streamCheckEveryMs,
  watchCheckEveryMs,
} from './request/index.ts'
import {
  findNode,
  findRoute,
  isReview,
  isUnclaimed,
  isUserReview,
  type MergedPart,
  mayDecide,
  partitionOfReview,
  partsOf,
  partsText,
  type RouteTarget,
  reviewedNamespace,
  sendToOwner,
  verbOf,
} from './routing/index.ts'
import { ClientWatches, classOf } from './watch/index.ts'

const partsCheckEveryMs = 1_000
const definitionTable = 'customresourcedefinitions.apiextensions.k8s.io'

/** Backups and keys: those of home would pass for those of all partitions. */
const isOfOneServer = (pathname: string) => /^\/(backup|encryption)(\/|$)/.test(pathname)

/** A request of a user, and its response. */
type Exchange = {
  readonly request: ClientRequest
  readonly response: ClientResponse
  readonly user: GatewayUser
  /** Aborted when the client has left. */
  readonly signal: AbortSignal
  readonly track: RequestTrack
}

/** How a request for one partition differs from one that is passed on and nothing else. */
type ForwardOptions = {
  /** Where to send it when the partition does not have it. */
  again?: ((epoch: number) => Promise<string | undefined>) | undefined
  /** That of the request, for the answer if no partition has it. */
  namespace?: string
  /** Instead of an apply, when the object does not exist any more. */
  createInstead?: (() => Promise<void>) | undefined
  /** Its answer waits for the other partitions. */
  changesDefinition?: boolean
  /** As `PartitionRequest.timeoutMs`. */
  timeoutMs?: number | undefined
}

/** What a list, a watch or a deletion of a collection is about, apart from its parts. */
type RequestedList = Omit<MergedRequest, 'parts' | 'forward'>

type RequestedResource = { readonly pathname: string; readonly searchParams: URLSearchParams; readonly resource: ResourceRoute }

/** Serves the Kubernetes API of all partitions: authenticates, decides where a request belongs, and passes it on or merges the answers. */
export class Gateway {
  readonly #options: GatewayOptions
  readonly #watches: ClientWatches
  readonly #merged: MergedRequests
  readonly #owned: CreateOwnedOptions
  readonly #limits: RequestLimits
  readonly #bodies = new BodyMemory()
  readonly #metrics: GatewayMetrics | undefined
  readonly #podStreams: PodStreams
  readonly #homeOrCopy: HomeOrCopy

  constructor(options: GatewayOptions) {
    const { tokenKey = randomBytes(32), maxWatchBufferBytes: maxBufferedBytes, sharedWatches: shared, log } = options
    this.#options = options
    this.#podStreams = new PodStreams(options, name => this.#connection(name))
    this.#homeOrCopy = new HomeOrCopy({
      home: () => options.map().home,
      copies: () => options.map().copiesOfHome(),
      connectionOf: name => this.#connection(name),
    })
    this.#limits = new RequestLimits(options.limits)
    const connectionTo = (name: string) => this.#connection(name)
    this.#watches = new ClientWatches({
      ...{ maxBufferedBytes, shared, log },
      reconnected: partition => this.#metrics?.reconnected(partition),
      passed: events => this.#metrics?.eventsPassed(events),
      slowClient: () => this.#metrics?.slowClient(),
    })
    this.#merged = new MergedRequests({ ...options, connectionTo, watches: this.#watches, tokenKey })
    this.#owned = { ...options, connectionTo }
    const partitions = () => [...options.map().partitions.keys()].map(name => ({ name, connection: options.connectionOf(name) }))
    const sources = { limits: this.#limits, watches: this.#watches, partitions }
    this.#metrics = options.registry && new GatewayMetrics(options.registry, sources)
  }

  /** Ends the watches that clients share, and with them their clients, and the open streams into Pods, which no listener counts. */
  close(): void {
    this.#watches.close()
    this.#podStreams.close()
  }

  /** Serves one request. Never throws. */
  async serve(request: ClientRequest, response: ClientResponse): Promise<void> {
    const abort = new AbortController()
    const track: RequestTrack = { verb: '', partition: '' }
    const startMs = performance.now()
    response.on('close', () => {
      // After a complete answer only a watch has more to end; an abort takes as long as the whole rest of a short request.
      if (!response.writableEnded || track.verb === 'watch') abort.abort()
      this.#metrics?.observe(track, response.statusCode, (performance.now() - startMs) / 1_000)
    })
    response.on('error', () => {})
    try {
      const user = await this.#options.authenticate(request)
      if (!user) return await this.#serveAnonymous(request, response, abort.signal)
      await this.#route({ request, response, user, signal: abort.signal, track })
    } catch (error) {
      if (abort.signal.aborted) return
      if (response.headersSent) response.destroy()
      else sendStatus(response, error, internal => this.#options.log('a request failed', internal))
    }
  }

  /** The version needs no credential, as at each server. Nothing that the client has sent is passed on. */
  async #serveAnonymous({ method, url }: ClientRequest, response: ClientResponse, signal: AbortSignal): Promise<void> {
    if (method !== 'GET' || !/^\/version\/?(\?|$)/.test(url ?? '')) throw new StatusError('Unauthorized', 'Unauthorized')
    atEnd(response, this.#limits.admitUser(anonymousUser, false))
    await sendAnswer((await this.#homeOrCopy.send({ method, path: '/version', user: gatewayUser, signal })).answer, response)
  }

  /** Serves a request to upgrade its connection: a stream into a Pod. Never throws. A listener asks `mayUpgrade` first. */
  async upgrade(request: ClientRequest, socket: Duplex, head: Buffer): Promise<void> {
    await this.#podStreams.upgrade(request, socket, head)
  }

  async #route(exchange: Exchange): Promise<void> {
    const { pathname, searchParams } = readTarget(exchange.request.url)
    const resource = readRoute(pathname)
    if (resource.type === 'path') await this.#servePath(exchange, pathname)
    else await this.#serveResource(exchange, { pathname, searchParams, resource })
  }

  /** Discovery, OpenAPI and the version are those of home. */
  async #servePath(exchange: Exchange, pathname: string): Promise<void> {
    const { request, response, user, track } = exchange
    if (isOfOneServer(pathname))
      throw new StatusError('NotFound', `${pathname} is served by each partition for itself: use the kubeconfig of the partition`)
    atEnd(response, this.#limits.admitUser(user, false))
    const body = await this.#readBody(exchange)
    if (request.method === 'GET' || request.method === 'HEAD') return await this.#askHomeOrCopy(exchange)
    track.partition = this.#options.map().home
    await this.#forward(exchange, track.partition, body)
  }

  async #serveResource(exchange: Exchange, { pathname, searchParams, resource }: RequestedResource): Promise<void> {
    const { request, response, user, signal, track } = exchange
    const map = this.#options.map()
    const { namespace, name } = resource
    const scope = namespace === '' ? await this.#options.scopeOf(resource.group, resource.plural) : 'Namespaced'
    const verb = verbOf(request.method, name, searchParams)
    track.verb = verb
    const isWatch = verb === 'watch'
    atEnd(response, this.#limits.admitUser(user, isWatch))
    const body = await this.#readBody(exchange)
    const tenant = map.tenantOf(namespace)
    if (tenant !== undefined) atEnd(response, this.#limits.admitTenant(user, tenant, isWatch))
    if (scope === undefined && (verb === 'list' || verb === 'watch')) return await this.#rejectUnknown(exchange, map.home)
    const table = tableOf(resource)
    const contentType = mediaType(request.headers['content-type'])
    if (verb === 'create' && namespace === '' && isReview(table) && body)
      return await this.#serveReview(exchange, { table, body, contentType })
    const isApply = verb === 'patch' && contentType.includes('apply-patch')
    const mayCreate = resource.subresource === '' && (verb === 'create' || isApply) && mayDecide(table, namespace)
    const object = mayCreate && body ? readNewObject(body, contentType) : undefined
    const selection = { labelSelector: searchParams.get('labelSelector') ?? '', fieldSelector: searchParams.get('fieldSelector') ?? '' }
    const routed = { ...resource, verb, scope, about: aboutOf(object), created: object, selection }
    // An apply creates what does not exist; its name is that of the path.
    if (isApply && object && isUnclaimed(routed, table, map)) await this.#options.lookUp(table, name)
    const isNew = isApply && object !== undefined && isUnclaimed(routed, table, map)
    const find = async (): Promise<RouteTarget> => await findRoute(routed, this.#options)
    const target = isNew ? ({ kind: 'claimed', table } as const) : await find()
    const create = async (table: string) =>
      await sendAnswer(await createOwned(request, { table, name, object, body, user, map, signal }, this.#owned), response)
    const partsNow = () => partsOf(routed, this.#options.map())
    const list: RequestedList = { user, resource, verb, scope, partsNow, searchParams, pathname, body, signal }
    track.partition = target.kind === 'one' ? target.partition : target.kind === 'merged' ? 'merged' : ''
    switch (target.kind) {
      case 'one': {
        const isOwned = namespace === '' && !systemNamespaces.includes(name)
        const createInstead = isApply && object && isOwned ? () => create(table) : undefined
        return await this.#serveOne(exchange, target, { list, find, createInstead })
      }
      case 'merged':
        return await this.#merged.serve(request, response, { ...list, parts: target.parts })
      case 'claimed':
        return await create(target.table)
    }
  }

  /** A review is answered by the partition of the namespace that it is about. */
  async #serveReview(
    exchange: Exchange,
    { table, body, contentType }: { readonly table: string; readonly body: Uint8Array; readonly contentType: string },
  ): Promise<void> {
    const { track } = exchange
    track.partition = await partitionOfReview(reviewedNamespace(table, body, contentType), this.#options)
    if (track.partition === this.#options.map().home && isUserReview(table)) return await this.#askHomeOrCopy(exchange, body)
    await this.#forward(exchange, track.partition, body)
  }

  /** Serves what is in one partition, and a collection of which others may become parts. */
  async #serveOne(
    exchange: Exchange,
    { partition, isOnlyPart }: Extract<RouteTarget, { kind: 'one' }>,
    { list, find, createInstead }: { list: RequestedList; find(): Promise<RouteTarget>; createInstead: ForwardOptions['createInstead'] },
  ): Promise<void> {
    const { request, response, user, signal } = exchange
    const { resource, verb, scope, partsNow, searchParams, pathname, body } = list
    const { namespace, name } = resource
    const again = async (epoch: number) => {
      this.#metrics?.misdirected(partition)
      await this.#options.refreshMap(namespace, epoch)
      const next = await find()
      return next.kind === 'one' ? next.partition : undefined
    }
    const table = tableOf(resource)
    const isChange = verb === 'update' || verb === 'patch'
    const changesDefinition = table === definitionTable && isChange && !searchParams.has('dryRun')
    const isLog = resource.group === '' && resource.plural === 'pods' && resource.subresource === 'log'
    // The head of a log that is followed comes with its first line.
    const timeoutMs = isLog && readBoolean(searchParams, 'follow') ? 0 : undefined
    const forward = () => this.#forward(exchange, partition, body, { again, namespace, createInstead, changesDefinition, timeoutMs })
    if (isLog) {
      atEnd(response, this.#podStreams.open(user))
      this.#endWithCredential(exchange, streamCheckEveryMs)
      return await forward()
    }
    const connection = this.#connection(partition)
    if ((verb === 'list' || verb === 'deletecollection') && isOnlyPart && (await isMergeable(connection, user, signal)))
      await this.#merged.requireOnlyPart(partition, list)
    if (verb !== 'watch') return await forward()
    if (name !== '') {
      this.#endWithCredential(exchange, watchCheckEveryMs)
      return await forward()
    }
    const { forwarded } = this.#watches
    const isComparable = isOnlyPart ? await isMergeable(connection, user, signal) : connection.isComparable
    // Another partition may become a part of it, with which a watch that is forwarded would not be complete.
    const forwardWatch = async () => {
      const close = forwarded.open(partition, pathname, classOf(table, scope === 'Namespaced'))
      this.#endWithCredential(exchange, watchCheckEveryMs)
      if (isOnlyPart) endWhenMoved(response, partsNow)
      await forward().finally(close)
    }
    if (isComparable && (isOnlyPart || forwarded.shouldShare(partition, pathname)))
      return await this.#merged.serve(request, response, { ...list, parts: [{ partition, excludedNamespaces: [] }], forward: forwardWatch })
    await forwardWatch()
  }

  async #askHomeOrCopy({ request, response, user, signal, track }: Exchange, body?: Uint8Array): Promise<void> {
    const { method = 'GET', url: path = '/' } = request
    const { partition, answer } = await this.#homeOrCopy.send({ method, path, user, headers: forwardedHeaders(request), body, signal })
    track.partition = partition
    await sendAnswer(answer, response)
  }

  /** Home says in its words that there is no such kind. If it has it by now, its own objects would not be the whole answer. */
  async #rejectUnknown({ request, response, user, signal }: Exchange, home: string): Promise<void> {
    const { method = 'GET', url: path = '/' } = request
    const answer = await this.#connection(home).stream({ method, path, user, headers: forwardedHeaders(request), signal })
    if (answer.status >= 300) return await sendAnswer(answer, response)
    discardBody(answer.body)
    throw new StatusError('ServiceUnavailable', 'this kind was created just now; retry', { details: { retryAfterSeconds: 1 } })
  }

  async #forward(
    { request, response, user, signal }: Exchange,
    partition: string,
    body: Uint8Array | undefined,
    { again, namespace = '', createInstead, changesDefinition = false, timeoutMs }: ForwardOptions = {},
  ): Promise<void> {
    const { method = 'GET', url = '/' } = request
    // An apply that creates what was deleted a moment ago needs a claim, as any creation.
    const own = { ...forwardedHeaders(request), ...(createInstead && mustNotCreate) }
    const send = (to: string, more: Readonly<Record<string, string>> = {}) =>
      this.#connection(to).send({ method, path: url, user, headers: { ...own, ...more }, body, signal, timeoutMs })
    const connection = (name: string) => this.#connection(name)
    const nodeAddress = (node: string) => findNode(node, { map: this.#options.map(), connection, user, signal })
    const isCurrent = (epoch: number) => this.#options.partitionsEpoch() >= epoch
    const answer = again ? await sendToOwner(partition, { send, again, isCurrent, namespace, nodeAddress }) : await send(partition)
    if (answer.status === createdTooLate && createInstead) {
      for await (const _ of answer.body);
      return await createInstead()
    }
    await sendAnswer(changesDefinition ? await this.#awaitDefinition(answer, partition, signal) : answer, response)
  }

  async #awaitDefinition(answer: TransportStreamResponse, home: string, signal: AbortSignal): Promise<TransportStreamResponse> {
    const { definitionMissing: missingIn } = this.#options
    if (!missingIn) return answer
    const read = (name: string) =>
      this.#connection(home).send({ method: 'GET', path: `${definitionsPath}${encodeURIComponent(name)}`, user: gatewayUser, signal })
    return await awaitDefinition(answer, { missingIn, read, signal })
  }

  /** The partition checks the rights of the user while a watch or log that was passed on is open. Breaks the connection when its credential is revoked. */
  #endWithCredential({ request, response, user }: Exchange, everyMs: number): void {
    const { authenticate, log } = this.#options
    const end = () => response.destroy()
    const onError = (error: unknown) => log('the credential of an open request cannot be checked', error)
    atEnd(response, endWithCredential({ request, user, authenticate, everyMs, end, onError }))
  }

  /** @returns undefined if the request is a read. */
  async #readBody({ request, response, user }: Exchange): Promise<Uint8Array | undefined> {
    if (request.method === 'GET' || request.method === 'HEAD') return undefined
    const body = this.#bodies.open(user.name)
    atEnd(response, body.release)
    return await readBody(request, body.add)
  }

  #connection(name: string): Partition {
    const connection = this.#options.connectionOf(name)
    if (connection) return connection
    throw new StatusError('ServiceUnavailable', `partition ${JSON.stringify(name)} has no address: see spec.server of the Partition`)
  }
}

const definitionsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/'

/** Whether a watch of it can end when the partitions change: a kube-apiserver's is passed through. */
async function isMergeable(connection: Partition, user: GatewayUser, signal: AbortSignal): Promise<boolean> {
  try {
    await connection.requireComparable(user, signal)
    return true
  } catch (error) {
    if (isReason(error, 'MethodNotAllowed')) return false
    throw error
  }
}

/** Breaks the connection of a watch that was passed through, when its collection has other parts: with these it is rejected, with the reason. */
function endWhenMoved(response: ClientResponse, partsNow: () => readonly MergedPart[]): void {
  const where = partsText(partsNow())
  const timer = setInterval(() => where !== partsText(partsNow()) && response.destroy(), partsCheckEveryMs).unref()
  atEnd(response, () => clearInterval(timer))
}
