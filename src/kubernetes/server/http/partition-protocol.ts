/**
 * What a gateway says to a partition, besides the requests of its users. Only connections of a front proxy are listened to.
 *
 * - `X-Oarlock-Seen-Version: R` on a request: the highest resource version that the gateway has seen. The clock of this server is raised to it before the
 *   request is served, so that what the response shows at R is complete, and a write gets a higher version. More than 60 s ahead it is ignored.
 * - `X-Oarlock-Not-After: R` on a request: a new object must not get a resource version above R, which is as long as the claim of its name is certain; an
 *   update may. Otherwise the response is 412, and nothing was done. 0: the request must create nothing.
 * - `X-Oarlock-Version` in a response: the version that this server has reached, which includes a write of the request.
 * - `X-Oarlock-Watch: ID` on a watch: each line begins with what the gateway must know without decoding it: the resource version and a space
 *   (0: an object that existed before), or for a bookmark `B`, the version and a space, or for an error `E` and a space.
 * - `X-Oarlock-Watch-Selected: true` besides: an event begins with `S`, the version, a space, a length, a space, and a JSON text of that length: what
 *   selectors select by (`watch/selected-values.ts`). If labels or selectable fields differ from those before, a line with `L`, the version and a
 *   space precedes it: the event for selections that the object leaves.
 * - `X-Oarlock-Watch-Map: true` besides: the watch begins with a line `M`, a version, and a space before `{}`: the newest version of home's map that this server
 *   has a copy of. Another such line comes when it has risen, before every event that was written later.
 * - `X-Oarlock-Watch-End: current` besides: after the existing objects, or the events since the version, comes a bookmark, and the watch ends.
 * - `X-Oarlock-Watch-Known: R` besides: the gateway has seen the change with this version, of an earlier watch of the resource. If this server has it not, because
 *   its data directory is older, the answer is 410, although the clock has been raised. The response has `X-Oarlock-Watch-Known` with the newest change.
 * - 421 Misdirected: this server does not have the namespace of the request, and nothing was done. The gateway reads its map again and retries once. A cause
 *   of field `mapEpoch` has the newest version of home's map that this server has a copy of, if it keeps one: the gateway must have reached it.
 *   For a request for the log or a stream of a Pod it is also the response when the Pod's Node is not here; `details` (kind `nodes`) names it. The gateway
 *   then repeats the request with `X-Oarlock-Node-Address: NODE HOST PORT`, where the kubelet of the Node listens. Its certificate is verified for the name
 *   of the Node, so that the connection is to that Node and no other.
 * - `GET /partition/kubelet?node=NAME`: `{"host": …, "port": …}`, where the kubelet of a Node of this partition listens.
 * - `GET /partition/progress?version=R&watch=ID&watch=ID`: raises the clock and returns the current resource version. Each of these watches gets a
 *   bookmark of at least R, after every event up to it. `mapEpoch` in the response is the newest version of home's map that this server has a copy of, if
 *   it keeps one.
 * - `POST /partition/rights`: which users may send which requests (`partition-rights.ts`).
 */
import { badRequest, notFound, type StatusCause, StatusError } from '../../object/index.ts'
import type { ResourceRoute } from '../../object/route.ts'
import { isTooFarAhead, parseRevision } from '../../util/index.ts'
import { type KubeletAddress, kubeletAddress } from '../kubelet/index.ts'
import { type GatewayWatch, mapUnread, type Services } from '../rest/index.ts'
import { parseEntry } from '../storage/index.ts'
import { type Reply, send } from '../wire/index.ts'
import type { HttpRequest } from './handler-types.ts'

export const seenVersionHeader = 'x-oarlock-seen-version'
const notAfterHeader = 'x-oarlock-not-after'
export const watchHeader = 'x-oarlock-watch'
const selectedHeader = 'x-oarlock-watch-selected'
const mapHeader = 'x-oarlock-watch-map'
const endHeader = 'x-oarlock-watch-end'
const knownHeader = 'x-oarlock-watch-known'
export const progressPath = '/partition/progress'
export const rightsPath = '/partition/rights'
export const kubeletPath = '/partition/kubelet'
const nodeAddressHeader = 'x-oarlock-node-address'

/**
 * A version that is too far ahead is ignored: the clock of another partition is wrong, and requests that do not need that one must work.
 * @throws {StatusError} BadRequest for a version that is no number.
 */
export function raiseToSeen({ store }: Services, { headers }: HttpRequest): Promise<void> | undefined {
  const text = headers[seenVersionHeader]
  if (typeof text !== 'string') return undefined
  const version = readVersion(text)
  return isTooFarAhead(version, store.nowMs) ? undefined : store.raise(version)
}

/** @throws {StatusError} BadRequest for a version that is no number. */
export function createBeforeOf({ headers }: HttpRequest): number | undefined {
  const text = headers[notAfterHeader]
  return typeof text === 'string' ? readVersion(text, notAfterHeader) : undefined
}

export function gatewayWatchOf({ headers }: HttpRequest): GatewayWatch | undefined {
  const id = headers[watchHeader]
  if (typeof id !== 'string' || id === '') return undefined
  const known = headers[knownHeader]
  return {
    id,
    showsSelected: headers[selectedHeader] === 'true',
    showsMap: headers[mapHeader] === 'true',
    endsWhenCurrent: headers[endHeader] === 'current',
    known: typeof known === 'string' ? parseRevision(known) : undefined,
  }
}

export async function serveProgress(
  { store, watches, mapEpoch }: Services,
  query: URLSearchParams | undefined,
  response: Reply,
): Promise<void> {
  const version = query?.get('version')
  if (version) await store.raise(readVersion(version))
  for (const id of query?.getAll('watch') ?? []) watches.requestBookmark(id)
  const epoch = mapEpoch?.()
  if (mapEpoch && epoch === undefined) throw mapUnread()
  send(
    response,
    200,
    'application/json',
    JSON.stringify({ resourceVersion: String(store.revision), ...(epoch !== undefined && { mapEpoch: epoch }) }),
  )
}

/** @throws {StatusError} NotFound, or ServiceUnavailable for a Node that has not reported it. */
export function serveKubelet({ store }: Services, query: URLSearchParams | undefined, response: Reply): void {
  const name = query?.get('node') ?? ''
  const node = store.table('nodes').get(name)
  if (!node) throw notFound({ group: '', plural: 'nodes' }, name)
  send(response, 200, 'application/json', JSON.stringify(kubeletAddress(parseEntry(node))))
}

/** The Node that the gateway has found in another partition. @throws {StatusError} BadRequest. */
export function nodeAddressOf({ headers }: HttpRequest): KubeletAddress | undefined {
  const text = headers[nodeAddressHeader]
  if (text === undefined) return undefined
  const [node = '', host = '', port = '', ...rest] = String(text).split(' ')
  if (node === '' || host === '' || !/^[0-9]{1,5}$/.test(port) || rest.length > 0)
    throw badRequest(`${nodeAddressHeader} must be "NODE HOST PORT", got ${JSON.stringify(String(text).slice(0, 80))}`)
  return { node, host, port: Number(port) }
}

/** @throws {StatusError} Misdirected (421) if the namespace of the request is not on this server. */
export function checkOwned({ store, mapEpoch }: Services, { namespace }: ResourceRoute): void {
  if (namespace === '' || store.table('namespaces').get(namespace)) return
  const epoch = mapEpoch?.() ?? 0
  throw new StatusError('Misdirected', `this partition does not have namespace ${JSON.stringify(namespace)}`, {
    ...{ code: 421, details: epoch > 0 ? { causes: [{ field: 'mapEpoch', message: String(epoch) } as StatusCause] } : {} },
  })
}

function readVersion(text: string, header = seenVersionHeader): number {
  const version = parseRevision(text)
  if (version === undefined) throw badRequest(`${header} must be a resource version, got ${JSON.stringify(text.slice(0, 40))}`)
  return version
}
