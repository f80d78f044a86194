import { decideFence, type FenceStep, type FenceTimings } from './decide-fence.ts'

/** Timers stop while the machine is suspended and the Lease does not: the clock is read at least this often. */
const checkIntervalMs = 500

export type FenceTimer = {
  /** Checks now, as after a renewal. */
  update(): void
  stop(): void
}

/** Calls `onStep` for each step that {@link decideFence} requires. Call `update` after each renewal, `stop` when the Run has ended. */
export function startFenceTimer(options: { times: FenceTimings; sinceRenewalMs(): number; onStep(step: FenceStep): void }): FenceTimer {
  const { times, sinceRenewalMs, onStep } = options
  let sent: FenceStep = 'none'
  let timer: NodeJS.Timeout | undefined
  const update = (): void => {
    clearTimeout(timer)
    const { send, recheckInMs } = decideFence(sinceRenewalMs(), sent, times)
    if (send !== 'none') {
      sent = send
      onStep(send)
    }
    if (recheckInMs !== Number.POSITIVE_INFINITY) timer = setTimeout(update, Math.min(recheckInMs, checkIntervalMs))
  }
  update()
  return { update, stop: () => clearTimeout(timer) }
}
