import { StatusError } from '../../kubernetes/object/index.ts'
import type { MergedPart } from './decide-route.ts'
import { partsText } from './merged-parts.ts'

/** What this gateway knows of the Partitions. */
export type KnownMap = {
  readonly home: string
  /** Their version. */
  knownEpoch(): number
  /** Waits until this gateway knows those of the version, for at most 2 s. */
  waitFor(epoch: number): Promise<void>
}

export type CurrentMapOptions = KnownMap & {
  /** The version of the Partitions that the parts know, the newest of all, as they have reported it with their progress. */
  readonly epoch: number
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
export async function requireCurrentMap({ epoch, routed, partsNow, ...known }: CurrentMapOptions): Promise<void> {
  if (epoch > known.knownEpoch()) await reachEpoch(epoch, known)
  if (partsText(routed) !== partsText(partsNow()))
    throw new StatusError('ServiceUnavailable', 'a partition was added just now; retry', { details: { retryAfterSeconds: 1 } })
}

/**
 * Waits until this gateway knows the Partitions of a version that a partition knows.
 * @throws {StatusError} ServiceUnavailable if it still does not.
 */
export async function reachEpoch(epoch: number, { home, knownEpoch, waitFor }: KnownMap): Promise<void> {
  await waitFor(epoch)
  if (epoch <= knownEpoch()) return
  throw new StatusError(
    'ServiceUnavailable',
    `home ${JSON.stringify(home)} does not answer, and partitions were added or changed since it did: a list could lack their objects`,
    { details: { retryAfterSeconds: 1 } },
  )
}

/** Why a list or watch at an earlier version begins again. */
export const removedSince = (version: number, relistFrom: number) =>
  `too old resource version: ${version}: a partition was removed at ${relistFrom}`
