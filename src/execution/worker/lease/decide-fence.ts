/** What a fence has done so far. It only goes forward. */
export type FenceStep = 'none' | 'SIGINT' | 'SIGTERM' | 'SIGKILL'

export type FenceTimings = { interruptMs: number; terminateMs: number; killMs: number }

const order: readonly FenceStep[] = ['none', 'SIGINT', 'SIGTERM', 'SIGKILL']

/**
 * Which signal the engine has to get when the last successful renewal was sent `sinceRenewalMs` ago, and in how many
 * milliseconds to ask again (Infinity: never). Invariant 2: every process is gone before anyone may call the Lease expired.
 * A step that is late is not skipped to be polite: far past the end the answer is SIGKILL at once.
 * A second SIGINT makes terraform drop what it has not saved, so a step is never asked for twice.
 */
export function decideFence(sinceRenewalMs: number, sent: FenceStep, times: FenceTimings): { send: FenceStep; recheckInMs: number } {
  const due: [FenceStep, number][] = [
    ['SIGINT', times.interruptMs],
    ['SIGTERM', times.terminateMs],
    ['SIGKILL', times.killMs],
  ]
  let send: FenceStep = 'none'
  let recheckInMs = Number.POSITIVE_INFINITY
  for (const [step, atMs] of due) {
    if (order.indexOf(step) <= order.indexOf(sent)) continue
    if (sinceRenewalMs >= atMs) send = step
    else recheckInMs = Math.min(recheckInMs, atMs - sinceRenewalMs)
  }
  return { send, recheckInMs }
}
