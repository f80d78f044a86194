import { badRequest, StatusError } from '../../kubernetes/object/index.ts'

/** A partition serves these to gateways only, and takes what a gateway passes on for its own request. */
const ownPrefix = '/partition/'
/** The path, and the kind in the details of its answer, by which a client finds out that it is connected to a gateway. */
export const gatewayProof = { path: ownPrefix, kind: 'gateways' } as const

export type RequestTarget = { readonly pathname: string; readonly searchParams: URLSearchParams }

/**
 * Splits the target of a request as partitions do, which get it as it is: a gateway that resolved `..` or `#` would decide about another path than the one that the
 * partition serves.
 * @throws {StatusError} BadRequest for a target that is not a path, NotFound for a path between gateways and partitions.
 */
export function readTarget(url = '/'): RequestTarget {
  if (!url.startsWith('/')) throw badRequest(`the target of a request must be a path, got ${JSON.stringify(url.slice(0, 80))}`)
  const at = url.indexOf('?')
  const pathname = at < 0 ? url : url.slice(0, at)
  if (pathname.startsWith(ownPrefix))
    throw new StatusError('NotFound', 'this server is a gateway, and serves no requests between gateways and partitions', {
      details: { kind: gatewayProof.kind },
    })
  return { pathname, searchParams: new URLSearchParams(at < 0 ? '' : url.slice(at + 1)) }
}
