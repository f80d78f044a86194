import { StatusError } from '../kubernetes/object/index.ts'
import { type ResourceRoute, readBoolean } from '../kubernetes/object/route.ts'
import type { GatewayOptions } from './gateway-options.ts'
import { tableOf } from './kinds/index.ts'
import { availableParts, deleteMerged, partialParameter, partialWarning, readMergedList } from './list/index.ts'
import { type Partition, sendAnswer } from './partition/index.ts'
import { type ClientRequest, type ClientResponse, forwardedHeaders, type GatewayUser, isSameUser, jsonOf } from './request/index.ts'
import {
  type KnownMap,
  listVersionOf,
  type MergedPart,
  misdirected,
  partsKey,
  partsText,
  type RoutedRequest,
  reachEpoch,
  removedSince,
  requireCurrentMap,
} from './routing/index.ts'
import type { ClientWatches } from './watch/index.ts'

export type MergedRequestsOptions = Pick<GatewayOptions, 'authenticate' | 'map' | 'partitionsEpoch' | 'waitForPartitions'> & {
  /** @throws {StatusError} ServiceUnavailable if it has no address. */
  connectionTo(partition: string): Partition
  readonly watches: ClientWatches
  /** Signs continue tokens. */
  readonly tokenKey: Uint8Array
}

export type MergedRequest = {
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
}

/** Serves lists, watches and `deletecollection` over several partitions, or over one of which others may become a part. */
export class MergedRequests {
  readonly #options: MergedRequestsOptions

  constructor(options: MergedRequestsOptions) {
    this.#options = options
  }

  /** @throws {StatusError} if a partition does not answer, or there may be more of them, and nothing was sent. */
  async serve(request: ClientRequest, response: ClientResponse, merged: MergedRequest): Promise<void> {
    const { user, resource, verb, scope, searchParams: query, pathname: path, signal, partsNow } = merged
    const { authenticate, map, connectionTo, watches, tokenKey } = this.#options
    const { parts, missing } = await availableParts(merged.parts, connectionTo, {
      ...{ user, signal },
      allowsPartial: verb === 'list' && readBoolean(query, partialParameter),
    })
    // Parts of a list are joined as they are: compressed ones could not be.
    const { 'accept-encoding': _, ...forwarded } = forwardedHeaders(request)
    const headers = { ...forwarded, accept: jsonOf(request.headers.accept) }
    const table = tableOf(resource)
    const areAllParts = () =>
      this.#requireCurrentMap(
        parts.map(({ connection }) => connection),
        merged.parts,
        partsNow,
      )
    const { relistFrom } = map()
    const sent = { parts, path, query, table, user, headers, signal, areAllParts }
    switch (verb) {
      case 'list': {
        requireKept(query, relistFrom)
        const answer = await readMergedList({ ...sent, partsKey: partsKey(merged.parts), tokenKey })
        return await sendAnswer({ ...answer, headers: { ...answer.headers, ...partialWarning(missing) } }, response)
      }
      case 'watch': {
        const where = partsText(merged.parts)
        const isCurrent = () => where === partsText(partsNow())
        return await watches.serve(response, {
          ...{ ...sent, isNamespaced: scope === 'Namespaced', isCurrent, relistFrom },
          isCurrentAt: epoch =>
            epoch <= this.#options.partitionsEpoch() ? isCurrent() : reachEpoch(epoch, this.#knownMap()).then(isCurrent),
          reauthenticate: async () => isSameUser(await authenticate(request), user),
          // A partition that does not have the namespace: the map is read again.
          sendAnswer: answer => (answer.status === misdirected && merged.forward ? merged.forward() : sendAnswer(answer, response)),
        })
      }
      case 'deletecollection':
        return await sendAnswer(await deleteMerged({ ...sent, body: merged.body ?? new Uint8Array() }), response)
      default:
        throw new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource')
    }
  }

  /**
   * Whether a list, or `deletecollection`, that is passed on to the only partition of its collection is complete there.
   * @throws {StatusError} ServiceUnavailable if there may be other parts, Expired if one was removed after the version that is listed.
   */
  async requireOnlyPart(
    partition: string,
    { user, verb, searchParams, partsNow, signal }: Pick<MergedRequest, 'user' | 'verb' | 'searchParams' | 'partsNow' | 'signal'>,
  ): Promise<void> {
    const connection = this.#options.connectionTo(partition)
    await connection.progress(user, 0, [], signal)
    await this.#requireCurrentMap([connection], [{ partition, excludedNamespaces: [] }], partsNow)
    if (verb === 'list') requireKept(searchParams, this.#options.map().relistFrom)
  }

  async #requireCurrentMap(
    connections: readonly Partition[],
    routed: readonly MergedPart[],
    partsNow: () => readonly MergedPart[],
  ): Promise<void> {
    const epoch = Math.max(...connections.map(({ mapEpoch }) => mapEpoch))
    await requireCurrentMap({ ...this.#knownMap(), epoch, routed, partsNow })
  }

  #knownMap(): KnownMap {
    const { map, partitionsEpoch: knownEpoch, waitForPartitions: waitFor } = this.#options
    return { home: map().home, knownEpoch, waitFor }
  }
}

/** @throws {StatusError} Expired for a list at an exact version that is older than the removal of a partition: its objects are missing. */
function requireKept(query: URLSearchParams, relistFrom: number): void {
  const wanted = listVersionOf(query)
  if (wanted.kind === 'exact' && wanted.version < relistFrom) throw new StatusError('Expired', removedSince(wanted.version, relistFrom))
}
