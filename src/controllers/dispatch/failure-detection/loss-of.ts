import type { ExpiredWorker } from './failure-detector.ts'

/**
 * What the server's answer means for a worker whose Lease has expired in the cache.
 *
 * @param live the Lease on the server; undefined if it does not exist
 * @param decided the last renewal that was seen when the loss was decided
 * @returns `Lost` if the Lease was not renewed since: before the worker is lost, `live` has to be deleted at exactly that version, so that every
 * later renewal fails. `Renewed` if it was renewed, or may have been.
 */
export function lossOf(live: ExpiredWorker['lease'], decided: ExpiredWorker['lease']): 'Lost' | 'Renewed' {
  // If the watch has not delivered the deletion of a Lease, it may not have delivered the last renewals either.
  return live?.uid === decided?.uid && live?.resourceVersion === decided?.resourceVersion ? 'Lost' : 'Renewed'
}
