import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { Registry } from 'prom-client'
import type { TransportStreamResponse } from '../kubernetes/client/transport.ts'
import { badRequest, isReason, type KubeObject, StatusError } from '../kubernetes/object/index.ts'
import { type ResourceRoute, readBoolean, readRoute } from '../kubernetes/object/route.ts'
import { mediaType } from '../kubernetes/util/index.ts'
import { atEnd } from './at-end.ts'
import { availableParts, partialParameter, partialWarning } from './available-parts.ts'
import { awaitDefinition } from './await-definition.ts'
import { BodyMemory } from './body-memory.ts'
import type { ClientRequest, ClientResponse } from './client-request.ts'
import { ClientWatches, type ClientWatchesOptions, classOf } from './client-watches.ts'
import { createClaimed, createdTooLate, mustNotCreate } from './create-claimed.ts'
import { outdatedMap, requireCurrentMap } from './current-map.ts'
import {
  decideOwner,
  isUnclaimed,
  type MergedPart,
  mayDecide,
  type ObjectOwner,
  type PartitionRole,
  partsOf,
  type RoutedRequest,
  type RouteTarget,
  type RoutingMap,
  roleOf,
  tenantLabel,
} from './decide-route.ts'
import { deleteMerged } from './delete-collection.ts'
import { discardBody } from './discard-body.ts'
import { findRoute } from './find-route.ts'
import { forwardedHeaders, jsonOf, readBody } from './forwarded-request.ts'
import { GatewayMetrics, type RequestTrack } from './gateway-metrics.ts'
import { HomeOrCopy } from './home-or-copy.ts'
import { systemNamespaces, tableOf } from './kind-classes.ts'
import { readMergedList } from './merged-list.ts'
import { partsKey, partsText } from './page-token.ts'
import { listVersionOf } from './part-query.ts'
import type { Partition } from './partition.ts'
import { PodStreams } from './pod-streams.ts'
import { aboutOf, type NewObject, named, readNewObject } from './read-object.ts'
import { isReview, isUserReview, partitionOfReview, reviewedNamespace } from './read-review.ts'
import { type RequestLimitOptions, RequestLimits } from './request-limits.ts'
import { readTarget } from './request-target.ts'
import { verbOf } from './request-verb.ts'
import { sendAnswer, sendStatus } from './send-answer.ts'
import { findNode, misdirected, sendToOwner } from './send-to-owner.ts'
import { anonymousUser, type GatewayUser, gatewayUser } from './user-headers.ts'

const partsCheckEveryMs = 1_000
const definitionTable = 'customresourcedefinitions.apiextensions.k8s.io'

/** Backups and keys: those of home would pass for those of all partitions. */
const isOfOneServer = (pathname: string) => /^\/(backup|encryption)(\/|$)/.test(pathname)

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

/** A routing map, with what new objects need. */
export type GatewayMap = RoutingMap & {
  partitionOfTenant(tenant: string): string | undefined
  partitionOfPool(pool: string): string | undefined
  /** The partitions other than home that serve the kinds of home. */
  copiesOfHome(): readonly string[]
  /** A resource version: before it there was a partition that was removed since. Watches and lists at an earlier one begin again. */
  readonly relistFrom: number
  /** The Tenant that a namespace was created for; undefined of system namespaces, and of those that no partition has. */
  tenantOf(namespace: string): string | undefined
}

export type GatewayOptions = {
  /** Who sent a request; undefined: no valid credential. */
  authenticate(request: ClientRequest): Promise<GatewayUser | undefined>
  /** As it is now. */
  map(): GatewayMap
  connectionOf(partition: string): Partition | undefined
  /** Of a kind, from discovery; undefined if there is no such kind. */
  scopeOf(group: string, plural: string): Promise<'Namespaced' | 'Cluster' | undefined>
  /** Tenants that the user may create namespaces of; of `wanted` only whether it is one. */
  tenantsOf(user: GatewayUser, wanted?: string): Promise<readonly string[]>
  /** Before the first object of a role: `announceRole`. */
  announceRole(partition: string, role: PartitionRole): Promise<void>
  /**
   * Claims the name of an owned object for a partition, or renews its claim. Returns the resource version of the claim.
   * @throws {StatusError} AlreadyExists if another partition has it.
   */
  claim(table: string, name: string, owner: ObjectOwner): Promise<number>
  /** Reads at home which partition has the name, into the map. @throws {StatusError} ServiceUnavailable if home does not answer. */
  lookUp(table: string, name: string): Promise<void>
  /** Reads again which partition has a namespace, because one does not have it. The Partitions are then at least those of `epoch`, unless that takes too long. */
  refreshMap(namespace: string, epoch: number): Promise<void>
  /** Of a CustomResourceDefinition of home, which partitions do not have it Established in this generation; undefined: all have. Default: always. */
  definitionMissing?(definition: KubeObject): string | undefined
  /** The version of home up to which the map knows the Partitions. */
  partitionsEpoch(): number
  /** Waits until the map knows the Partitions of `epoch`, for at most 2 s. */
  waitForPartitions(epoch: number): Promise<void>
  /** Signs continue tokens: the same in all gateways. Default: a random one. */
  readonly tokenKey?: Uint8Array | undefined
  /** Of events that wait for one partition, for each watch. Default 16 MiB. */
  readonly maxWatchBufferBytes?: number | undefined
  /** Limits of the watches that clients share. */
  readonly sharedWatches?: ClientWatchesOptions['shared']
  /** How much one Tenant or user may use at a time. Default: see {@link RequestLimitOptions}. */
  readonly limits?: Partial<RequestLimitOptions> | undefined
  /** Where the metrics of the gateway are registered. Default: nowhere. */
  readonly registry?: Registry | undefined
  readonly log: (message: string, error?: unknown) => void
}

/** Serves the Kubernetes API of all partitions: authenticates, decides where a request belongs, and passes it on or merges the answers. */
export class Gateway {
  readonly #options: GatewayOptions
  readonly #tokenKey: Uint8Array
  readonly #watches: ClientWatches
  readonly #limits: RequestLimits
  readonly #bodies = new BodyMemory()
  readonly #metrics: GatewayMetrics | undefined
  readonly #podStreams: PodStreams
  readonly #homeOrCopy: HomeOrCopy

  constructor(options: GatewayOptions) {
    const { tokenKey = randomBytes(32), maxWatchBufferBytes: maxBufferedBytes, sharedWatches: shared, log } = options
    this.#options = options
    this.#tokenKey = tokenKey
    this.#podStreams = new PodStreams(options, name => this.#connection(name))
    this.#homeOrCopy = new HomeOrCopy({
      home: () => options.map().home,
      copies: () => options.map().copiesOfHome(),
      connectionOf: name => this.#connection(name),
    })
    this.#limits = new RequestLimits(options.limits)
    this.#watches = new ClientWatches({
      ...{ maxBufferedBytes, shared, log },
      reconnected: partition => this.#metrics?.reconnected(partition),
      passed: events => this.#metrics?.eventsPassed(events),
      slowClient: () => this.#metrics?.slowClient(),
    })
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
      await this.#route(request, response, user, abort.signal, track)
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

  async #route(
    request: ClientRequest,
    response: ClientResponse,
    user: GatewayUser,
    signal: AbortSignal,
    track: RequestTrack,
  ): Promise<void> {
    const { pathname, searchParams } = readTarget(request.url)
    const map = this.#options.map()
    const resource = readRoute(pathname)
    // Discovery, OpenAPI and the version are those of home.
    if (resource.type === 'path') {
      if (isOfOneServer(pathname))
        throw new StatusError('NotFound', `${pathname} is served by each partition for itself: use the kubeconfig of the partition`)
      atEnd(response, this.#limits.admitUser(user, false))
      const body = await this.#readBody(request, response, user)
      const isRead = request.method === 'GET' || request.method === 'HEAD'
      if (isRead) return await this.#askHomeOrCopy(request, response, user, signal, track)
      track.partition = map.home
      return await this.#forward(request, response, user, map.home, signal, body)
    }
    const { namespace, name } = resource
    const scope = namespace === '' ? await this.#options.scopeOf(resource.group, resource.plural) : 'Namespaced'
    const verb = verbOf(request.method, name, searchParams)
    track.verb = verb
    const isWatch = verb === 'watch'
    atEnd(response, this.#limits.admitUser(user, isWatch))
    const body = await this.#readBody(request, response, user)
    const tenant = map.tenantOf(namespace)
    if (tenant !== undefined) atEnd(response, this.#limits.admitTenant(user, tenant, isWatch))
    if (scope === undefined && (verb === 'list' || verb === 'watch'))
      return await this.#rejectUnknown(request, response, user, map.home, signal)
    const table = tableOf(resource)
    const contentType = mediaType(request.headers['content-type'])
    const isApply = verb === 'patch' && contentType.includes('apply-patch')
    if (verb === 'create' && namespace === '' && isReview(table) && body) {
      track.partition = await partitionOfReview(reviewedNamespace(table, body, contentType), this.#options)
      if (track.partition === map.home && isUserReview(table))
        return await this.#askHomeOrCopy(request, response, user, signal, track, body)
      return await this.#forward(request, response, user, track.partition, signal, body)
    }
    const mayCreate = resource.subresource === '' && (verb === 'create' || isApply) && mayDecide(table, namespace)
    const object = mayCreate && body ? readNewObject(body, contentType) : undefined
    const selection = { labelSelector: searchParams.get('labelSelector') ?? '', fieldSelector: searchParams.get('fieldSelector') ?? '' }
    const routed = { ...resource, verb, scope, about: aboutOf(object), created: object, selection }
    // An apply creates what does not exist; its name is that of the path.
    if (isApply && object && isUnclaimed(routed, table, map)) await this.#options.lookUp(table, name)
    const isNew = isApply && object !== undefined && isUnclaimed(routed, table, map)
    const find = async (): Promise<RouteTarget> => await findRoute(routed, this.#options)
    const target = isNew ? ({ kind: 'claimed', table } as const) : await find()
    const createOwned = (table: string) => this.#createOwned(request, response, user, { table, name, object, body, map, signal })
    track.partition = target.kind === 'one' ? target.partition : target.kind === 'merged' ? 'merged' : ''
    const partsNow = () => partsOf(routed, this.#options.map())
    const list = { user, resource, verb, scope, partsNow, searchParams, pathname, body, signal }
    switch (target.kind) {
      case 'one': {
        const again = async (epoch: number) => {
          this.#metrics?.misdirected(target.partition)
          await this.#options.refreshMap(namespace, epoch)
          const next = await find()
          return next.kind === 'one' ? next.partition : undefined
        }
        const isOwned = namespace === '' && !systemNamespaces.includes(name)
        const createInstead = isApply && object && isOwned ? () => createOwned(table) : undefined
        const isChange = verb === 'update' || verb === 'patch'
        const changesDefinition = table === definitionTable && isChange && !searchParams.has('dryRun')
        const isLog = resource.group === '' && resource.plural === 'pods' && resource.subresource === 'log'
        // The head of a log that is followed comes with its first line.
        const timeoutMs = isLog && readBoolean(searchParams, 'follow') ? 0 : undefined
        const options = { again, namespace, createInstead, changesDefinition, timeoutMs }
        const forward = () => this.#forward(request, response, user, target.partition, signal, body, options)
        if (isLog) {
          const close = this.#podStreams.open(user)
          return await forward().finally(close)
        }
        const { partition, isOnlyPart = false } = target
        const connection = this.#connection(partition)
        if ((verb === 'list' || verb === 'deletecollection') && isOnlyPart && (await isMergeable(connection, user, signal))) {
          await connection.progress(user, 0, [], signal)
          await this.#requireCurrentMap([{ connection }], [{ partition, excludedNamespaces: [] }], partsNow)
          if (verb === 'list') requireKept(searchParams, this.#options.map().relistFrom)
        }
        if (verb !== 'watch' || name !== '') return await forward()
        const { forwarded } = this.#watches
        const isComparable = isOnlyPart ? await isMergeable(connection, user, signal) : connection.isComparable
        // Another partition may become a part of it, with which a watch that is forwarded would not be complete.
        if (isComparable && (isOnlyPart || forwarded.shouldShare(partition, pathname)))
          return await this.#merge(request, response, { ...list, parts: [{ partition, excludedNamespaces: [] }], forward })
        const close = forwarded.open(partition, pathname, classOf(table, scope === 'Namespaced'))
        if (isOnlyPart) endWhenMoved(response, partsNow)
        return await forward().finally(close)
      }
      case 'merged':
        return await this.#merge(request, response, { ...list, parts: target.parts })
      case 'claimed':
        return await createOwned(target.table)
    }
  }

  async #askHomeOrCopy(
    request: ClientRequest,
    response: ClientResponse,
    user: GatewayUser,
    signal: AbortSignal,
    track: RequestTrack,
    body?: Uint8Array,
  ): Promise<void> {
    const { method = 'GET', url: path = '/' } = request
    const { partition, answer } = await this.#homeOrCopy.send({ method, path, user, headers: forwardedHeaders(request), body, signal })
    track.partition = partition
    await sendAnswer(answer, response)
  }

  /** Home says in its words that there is no such kind. If it has it by now, its own objects would not be the whole answer. */
  async #rejectUnknown(
    request: ClientRequest,
    response: ClientResponse,
    user: GatewayUser,
    home: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { method = 'GET', url: path = '/' } = request
    const answer = await this.#connection(home).stream({ method, path, user, headers: forwardedHeaders(request), signal })
    if (answer.status >= 300) return await sendAnswer(answer, response)
    discardBody(answer.body)
    throw new StatusError('ServiceUnavailable', 'this kind was created just now; retry', { details: { retryAfterSeconds: 1 } })
  }

  /**
   * Creates an object whose name is unique in all partitions. Its partition is asked first whether it would accept the object: without the right to create it,
   * a user must not be able to take a name, and an object that is not valid must leave no claim.
   */
  async #createOwned(
    request: ClientRequest,
    response: ClientResponse,
    user: GatewayUser,
    {
      table,
      object,
      map,
      signal,
      ...sent
    }: {
      readonly table: string
      /** In the path. */
      readonly name: string
      readonly object: NewObject | undefined
      readonly body: Uint8Array | undefined
      readonly map: GatewayMap
      readonly signal: AbortSignal
    },
  ): Promise<void> {
    const { name, body } = named(sent, object, mediaType(request.headers['content-type']))
    if (name === '') throw badRequest(`${table} need a metadata.name or metadata.generateName: the gateway claims their names`)
    const tenants = table === 'namespaces' ? await this.#options.tenantsOf(user, object?.labels?.[tenantLabel]) : []
    const owner = decideOwner(table, { name, labels: object?.labels }, tenants, map)
    const { method = 'POST', url = '/' } = request
    const connection = this.#connection(owner.partition)
    const headers = forwardedHeaders(request)
    const isDryRun = readTarget(url).searchParams.has('dryRun')
    const trial = await connection.stream({
      method,
      path: isDryRun ? url : `${url}${url.includes('?') ? '&' : '?'}dryRun=All`,
      user,
      headers,
      body,
      signal,
    })
    if (isDryRun || trial.status >= 300) return await sendAnswer(trial, response)
    for await (const _ of trial.body);
    const role = roleOf(table)
    if (!map.partitions.get(owner.partition)?.announced?.has(role)) await this.#options.announceRole(owner.partition, role)
    const answer = await createClaimed(
      owner.partition,
      () => this.#options.claim(table, name, owner),
      more => connection.stream({ method, path: url, user, headers: { ...headers, ...more }, body, signal }),
    )
    await sendAnswer(answer, response)
  }

  async #forward(
    request: ClientRequest,
    response: ClientResponse,
    user: GatewayUser,
    partition: string,
    signal: AbortSignal,
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

  async #merge(
    request: ClientRequest,
    response: ClientResponse,
    list: {
      readonly user: GatewayUser
      readonly resource: ResourceRoute
      readonly verb: RoutedRequest['verb']
      readonly scope: RoutedRequest['scope']
      readonly parts: readonly MergedPart[]
      partsNow(): readonly MergedPart[]
      readonly searchParams: URLSearchParams
      readonly pathname: string
      readonly body: Uint8Array | undefined
      readonly signal: AbortSignal
      /** Sends the request to its partition; of one that is not merged. */
      forward?(): Promise<void>
    },
  ): Promise<void> {
    const { user, resource, verb, searchParams: query, pathname: path, signal } = list
    const { parts, missing } = await availableParts(list.parts, name => this.#connection(name), {
      ...{ user, signal },
      allowsPartial: verb === 'list' && readBoolean(query, partialParameter),
    })
    // Parts of a list are joined as they are: compressed ones could not be.
    const { 'accept-encoding': _, ...forwarded } = forwardedHeaders(request)
    const headers = { ...forwarded, accept: jsonOf(request.headers.accept) }
    const table = tableOf(resource)
    const areAllParts = () => this.#requireCurrentMap(parts, list.parts, list.partsNow)
    const { relistFrom } = this.#options.map()
    if (verb === 'list') {
      requireKept(query, relistFrom)
      const keys = { partsKey: partsKey(list.parts), tokenKey: this.#tokenKey }
      const answer = await readMergedList({ parts, path, query, table, user, headers, ...keys, signal, areAllParts })
      return await sendAnswer({ ...answer, headers: { ...answer.headers, ...partialWarning(missing) } }, response)
    }
    if (verb === 'watch') {
      const where = partsText(list.parts)
      const isCurrent = () => where === partsText(list.partsNow())
      const isCurrentAt = (epoch: number) =>
        epoch <= this.#options.partitionsEpoch() ? isCurrent() : this.#requireEpoch(epoch).then(isCurrent)
      return await this.#watches.serve(response, {
        ...{
          parts,
          path,
          query,
          table,
          isNamespaced: list.scope === 'Namespaced',
          user,
          headers,
          signal,
          isCurrent,
          isCurrentAt,
          areAllParts,
          relistFrom,
        },
        reauthenticate: async () => isSameUser(await this.#options.authenticate(request), user),
        // A partition that does not have the namespace: the map is read again.
        sendAnswer: answer => (answer.status === misdirected && list.forward ? list.forward() : sendAnswer(answer, response)),
      })
    }
    if (verb === 'deletecollection')
      return await sendAnswer(
        await deleteMerged({ parts, path, query, table, user, headers, body: list.body ?? new Uint8Array(), signal, areAllParts }),
        response,
      )
    throw new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource')
  }

  async #requireCurrentMap(
    parts: readonly { readonly connection: Partition }[],
    routed: readonly MergedPart[],
    partsNow: () => readonly MergedPart[],
  ): Promise<void> {
    const options = this.#options
    await requireCurrentMap({
      ...{ home: options.map().home, routed, partsNow },
      epoch: Math.max(...parts.map(({ connection }) => connection.mapEpoch)),
      knownEpoch: () => options.partitionsEpoch(),
      waitFor: epoch => options.waitForPartitions(epoch),
    })
  }

  /** @throws {StatusError} ServiceUnavailable if the map of this gateway stays older than that. */
  async #requireEpoch(epoch: number): Promise<void> {
    const { map, partitionsEpoch, waitForPartitions } = this.#options
    await waitForPartitions(epoch)
    if (partitionsEpoch() < epoch) throw outdatedMap(map().home)
  }

  /** Undefined of a read. */
  async #readBody(request: ClientRequest, response: ClientResponse, user: GatewayUser): Promise<Uint8Array | undefined> {
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

/** @throws {StatusError} Expired for a list at an exact version from before the removal of a partition: its objects are missing. */
function requireKept(query: URLSearchParams, relistFrom: number): void {
  const wanted = listVersionOf(query)
  if (wanted.kind === 'exact' && wanted.version < relistFrom)
    throw new StatusError('Expired', `too old resource version: ${wanted.version}: a partition was removed at ${relistFrom}`)
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

const isSameUser = (now: GatewayUser | undefined, { name, uid }: GatewayUser) => now !== undefined && now.name === name && now.uid === uid
