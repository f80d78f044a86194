import { formatDuration } from '../../kubernetes/object/index.ts'
import type { DrainReason } from './decide-step.ts'
import type { LeaseTimings } from './lease/lease-timings.ts'

/** The problems of a worker, for each kind of probe. No problems: healthy. */
export type WorkerHealth = { readonly live: readonly string[]; readonly ready: readonly string[]; readonly started: readonly string[] }

export type WorkerHealthInputs = {
  readonly isRegistered: boolean
  /** Since before the last successful renewal was sent. */
  readonly sinceRenewalMs: number
  readonly timings: Pick<LeaseTimings, 'durationMs' | 'interruptMs'>
  readonly drainReason: DrainReason | undefined
  /** `lost`: none can be kept running, so no engine may run (invariant 2); `disconnected`: the worker is looking for another one. */
  readonly supervisor: 'connected' | 'disconnected' | 'lost'
}

/** Decides the health that a worker reports. Whether its event loop still runs cannot be decided here. */
export function decideHealth({ isRegistered, sinceRenewalMs, timings, drainReason, supervisor }: WorkerHealthInputs): WorkerHealth {
  const { durationMs, interruptMs } = timings
  const started = isRegistered ? [] : ['the worker is not registered yet']
  const isLate = isRegistered && sinceRenewalMs >= interruptMs
  const lease = isLate
    ? [`last renewed the Lease ${formatDuration(sinceRenewalMs)} ago, it expires after ${formatDuration(durationMs)}`]
    : []
  const lost = supervisor === 'lost' ? ['failed to keep a supervisor process running; the worker exits when its engines have stopped'] : []
  const disconnected = isRegistered && supervisor === 'disconnected' ? ['not connected to a supervisor process, reconnecting'] : []
  const draining = drainReason === undefined ? [] : [`the worker is draining (${drainReason}) and starts no Run`]
  // By then the worker should have exited on its own, so killing it is safe.
  const isOverdue = isRegistered && sinceRenewalMs >= 2 * durationMs
  return { started, live: [...(isOverdue ? lease : []), ...lost], ready: [...started, ...lease, ...lost, ...disconnected, ...draining] }
}
