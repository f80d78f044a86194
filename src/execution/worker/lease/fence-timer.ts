import { systemTimers, type Timers } from '../../../kubernetes/util/index.ts'
import { decideFence, type FenceStep, type FenceTimings } from './decide-fence.ts'

/** Timers stop while the machine is suspended and the Lease does not: the clock is read at least this often. */
const checkIntervalMs = 500

export type FenceTimer = {
  /** Checks now, as after a renewal. */
  update(): void
  stop(): void
}

export type FenceTimerOptions = {
  readonly times: FenceTimings
  sinceRenewalMs(): number
  onStep(step: FenceStep): void
  /** For tests. Default: the timers of the process. */
  readonly timers?: Pick<Timers, 'after'>
}

/** Calls `onStep` for each step that {@link decideFence} requires. Call `update` after each renewal, `stop` when the Run has ended. */
export function startFenceTimer({ times, sinceRenewalMs, onStep, timers = systemTimers }: FenceTimerOptions): FenceTimer {
  let sent: FenceStep = 'none'
  let cancel = (): void => {}
  const update = (): void => {
    cancel()
    const { send, recheckInMs } = decideFence(sinceRenewalMs(), sent, times)
    if (send !== 'none') {
      sent = send
      onStep(send)
    }
    if (recheckInMs !== Number.POSITIVE_INFINITY) cancel = timers.after(Math.min(recheckInMs, checkIntervalMs), update)
  }
  update()
  return { update, stop: () => cancel() }
}
