import { writeFileSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'

/**
 * Nice values (setpriority(2)) of what runs beside the API server and the controllers, which keep theirs. Whatever engines and starting workers
 * compute, a renewal of a Lease is answered in time (invariant 2).
 */
export const niceValues = { worker: 5, engine: 10 } as const

/**
 * Lowers the CPU priority of a process that was just started, before it has threads or children, which inherit it. It is never raised. Where the
 * kernel groups processes by session (sched(7), autogroup), as on Linux without systemd's CPU controller, nice values count only
 * within a session, so that of the session's group is set too. A failure is ignored: the process may have ended, and the priority is no guarantee.
 */
export function lowerPriority(pid: number, nice: number): void {
  try {
    setPriority(pid, Math.min(constants.priority.PRIORITY_LOW, Math.max(getPriority(pid), nice)))
  } catch {
    return
  }
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(nice))
  } catch {
    // Not Linux, no autogroups, or more than one change in 100 ms by an ordinary user, which the kernel refuses.
  }
}
