import type { Worker } from '../../../api/index.ts'
import type { StartFailure } from './start-state.ts'

/** A request that no host has claimed by then is reported, before its start times out. */
const unclaimedAfterMs = 10_000

export type RequestGarbageDecision = {
  /** Failed requests to delete; their pool reports the failure by now. */
  readonly remove: readonly Worker[]
  /** Requests that no host has claimed in time. They remain: a host may still claim them. */
  readonly unclaimed: readonly { readonly worker: Worker; readonly failure: StartFailure }[]
  /** Time until the next decision is due; undefined if none is. */
  readonly requeueAfterMs: number | undefined
}

/** @param requests Workers whose start is requested and that have not registered. */
export function decideRequestGarbage(requests: readonly Worker[], nowMs: number): RequestGarbageDecision {
  const remove: Worker[] = []
  const unclaimed: { worker: Worker; failure: StartFailure }[] = []
  let requeueAfterMs: number | undefined
  for (const worker of requests) {
    if (worker.status?.phase === 'Failed') remove.push(worker)
    else if (worker.status?.phase !== 'Starting') {
      const remainingMs = Date.parse(worker.metadata.creationTimestamp) + unclaimedAfterMs - nowMs
      if (remainingMs <= 0) unclaimed.push({ worker, failure: unclaimedFailure(worker) })
      else requeueAfterMs = Math.min(requeueAfterMs ?? Number.POSITIVE_INFINITY, remainingMs)
    }
  }
  return { remove, unclaimed, requeueAfterMs }
}

function unclaimedFailure({ metadata, spec }: Worker): StartFailure {
  const hint = `is "oarlock pool" running for pool ${spec.pool}, and does a host have free capacity?`
  return { reason: 'Unschedulable', message: `no host has claimed worker ${metadata.name}: ${hint}` }
}
