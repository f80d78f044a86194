import type { DrainReason } from './decide-step.ts'
import type { LeaseTimings } from './lease/lease-timings.ts'

/** How a worker is; each is empty when all is well, else says why not. */
export type WorkerHealth = { readonly live: readonly string[]; readonly ready: readonly string[]; readonly started: readonly string[] }

export type WorkerHealthInputs = {
  readonly isRegistered: boolean
  /** Since before the last renewal that succeeded was sent. */
  readonly sinceRenewalMs: number
  readonly timings: Pick<LeaseTimings, 'durationMs' | 'interruptMs'>
  readonly drainReason: DrainReason | undefined
  /** `lost`: none can be kept, so no engine may run (invariant 2); `away`: none answers at the moment, another one is looked for. */
  readonly supervisor: 'answers' | 'away' | 'lost'
}

/** What the worker says of its own health. That its event loop turns is for somebody else to say. */
export function decideHealth({ isRegistered, sinceRenewalMs, timings, drainReason, supervisor }: WorkerHealthInputs): WorkerHealth {
  const { durationMs, interruptMs } = timings
  const started = isRegistered ? [] : ['the worker has not registered yet']
  const isLate = isRegistered && sinceRenewalMs >= interruptMs
  const lease = isLate ? [`the Lease was renewed ${formatSeconds(sinceRenewalMs)} ago; it lasts ${formatSeconds(durationMs)}`] : []
  const lost =
    supervisor === 'lost' ? ['no supervisor can be kept beside the worker, so no engine may run: it ends when those that ran have'] : []
  const away = isRegistered && supervisor === 'away' ? ['the supervisor beside the worker does not answer at the moment'] : []
  const draining = drainReason === undefined ? [] : [`the worker drains (${drainReason}) and takes no Run`]
  // By then it should have ended by itself: whoever asks may as well end it.
  const isOver = isRegistered && sinceRenewalMs >= 2 * durationMs
  return { started, live: [...(isOver ? lease : []), ...lost], ready: [...started, ...lease, ...lost, ...away, ...draining] }
}

export const formatSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
