import { StatusError } from '../kubernetes/object/index.ts'
import type { MergedPart } from './decide-route.ts'
import { partsText } from './page-token.ts'

export type CurrentMapOptions = {
  readonly home: string
  /** The version of the Partitions that the parts know, the newest of all, as they have reported it with their progress. */
  readonly epoch: number
  /** That of this gateway. */
  knownEpoch(): number
  /** Waits until this gateway knows the Partitions of the version, for at most 2 s. */
  waitFor(epoch: number): Promise<void>
  /** The parts that the request was routed to, with those that do not answer. */
  readonly routed: readonly MergedPart[]
  /** Where it would be routed to now. */
  partsNow(): readonly MergedPart[]
}

/**
 * Whether the parts of a list are all partitions: one that was added while this gateway cannot reach home is known to the others. Call it when they have
 * reported progress.
 * @throws {StatusError} ServiceUnavailable if there may be more.
 */
export async function requireCurrentMap({ home, epoch, knownEpoch, waitFor, routed, partsNow }: CurrentMapOptions): Promise<void> {
  if (epoch > knownEpoch()) await waitFor(epoch)
  if (epoch > knownEpoch()) throw outdatedMap(home)
  if (partsText(routed) !== partsText(partsNow()))
    throw new StatusError('ServiceUnavailable', 'a partition was added just now; retry', { details: { retryAfterSeconds: 1 } })
}

export const outdatedMap = (home: string) =>
  new StatusError(
    'ServiceUnavailable',
    `home ${JSON.stringify(home)} does not answer, and partitions were added or changed since it did: a list could lack their objects`,
    { details: { retryAfterSeconds: 1 } },
  )
