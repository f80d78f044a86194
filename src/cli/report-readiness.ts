import { systemTimers, type Timers } from '../kubernetes/util/index.ts'
import type { StartedRole } from './run-role.ts'

const readinessPollMs = { first: 50, longest: 1_000 }
/** A reason that lasts less is part of every start. */
const waitingAfterMs = 1_000

/**
 * Prints each reason why a role is not ready until it is, then what it does, and again whenever that changes. Returns a function that ends it.
 */
export function reportReadiness(
  role: Pick<StartedRole, 'notReady' | 'ready'>,
  print: (line: string) => void,
  timers: Timers = systemTimers,
): () => void {
  let waiting = ''
  let ready: string | undefined
  let since = { reason: '', ms: timers.nowMs() }
  let cancel = () => {}
  const poll = (intervalMs: number) => {
    const reason = role.notReady().join('; ')
    const text = reason === '' ? role.ready() : undefined
    if (text !== undefined && text !== ready) {
      print(`ready: ${text}`)
      ready = text
    }
    const nowMs = timers.nowMs()
    if (reason !== since.reason) since = { reason, ms: nowMs }
    // Once it was ready, /readyz and the log report why it is not.
    if (ready === undefined && reason !== '' && reason !== waiting && nowMs - since.ms >= waitingAfterMs) {
      print(`waiting: ${reason}`)
      waiting = reason
    }
    cancel = timers.after(intervalMs, () => poll(Math.min(intervalMs * 2, readinessPollMs.longest)))
  }
  poll(readinessPollMs.first)
  return () => cancel()
}
