/** The last signal that a fence has sent. It only advances. */
export type FenceStep = 'none' | 'SIGINT' | 'SIGTERM' | 'SIGKILL'

/** Milliseconds since before the last successful renewal was sent. */
export type FenceTimings = { interruptMs: number; terminateMs: number; killMs: number }

/** A worker that is late by half of this leaves SIGINT to its supervisor, which sends it after the whole: no engine gets it from both. */
export const interruptSlackMs = 100

/** Reports whether SIGINT to an engine is the worker's task; without a supervisor too, the engine stops by the next signal, SIGTERM. */
export function isWorkersInterrupt(sinceRenewalMs: number, { interruptMs }: FenceTimings): boolean {
  return sinceRenewalMs < interruptMs + interruptSlackMs / 2
}

const order: readonly FenceStep[] = ['none', 'SIGINT', 'SIGTERM', 'SIGKILL']

/**
 * Decides which signal the engine must get, `sinceRenewalMs` after the last successful renewal was sent, and in how many milliseconds
 * to decide again (Infinity: never). Invariant 2: every process has exited before any observer may call the Lease expired.
 * When several steps are due, the strongest is sent: far past the end that is SIGKILL, immediately.
 * No step is sent twice, because a second SIGINT makes terraform drop what it has not saved.
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
