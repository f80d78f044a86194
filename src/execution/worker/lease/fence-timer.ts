import { decideFence, type FenceStep, type FenceTimings } from './decide-fence.ts'

/** Timers stand still while the machine sleeps, and the Lease does not: the clock is looked at this often. */
const lookEveryMs = 500

/** Calls `onStep` when {@link decideFence} says so. `poke` it after each renewal; `stop` it when the Run is over. */
export function startFenceTimer(options: { times: FenceTimings; sinceRenewalMs(): number; onStep(step: FenceStep): void }): {
  poke(): void
  stop(): void
} {
  const { times, sinceRenewalMs, onStep } = options
  let sent: FenceStep = 'none'
  let timer: NodeJS.Timeout | undefined
  const poke = (): void => {
    clearTimeout(timer)
    const { send, recheckInMs } = decideFence(sinceRenewalMs(), sent, times)
    if (send !== 'none') {
      sent = send
      onStep(send)
    }
    if (recheckInMs !== Number.POSITIVE_INFINITY) timer = setTimeout(poke, Math.min(recheckInMs, lookEveryMs))
  }
  poke()
  return { poke, stop: () => clearTimeout(timer) }
}
