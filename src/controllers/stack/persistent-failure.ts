import type { StackFacts } from './facts.ts'
import { formatDateTime } from './messages.ts'
import { endedAtMs } from './run-status.ts'

/** A failure that lasts for this many attempts, or this long, is reported as persistent: a retry has not helped, and it may need a user. */
export const persistentAfter = { attempts: 10, ms: 30 * 60_000 } as const

/** Consecutive attempts that failed. Times in milliseconds. */
export type Attempts = { readonly count: number; readonly sinceMs: number; readonly lastMs: number }

/** Judged by the last attempt and not by the present time, so that time alone changes no status. */
export function isPersistent({ count, sinceMs, lastMs }: Attempts): boolean {
  return count >= persistentAfter.attempts || lastMs - sinceMs >= persistentAfter.ms
}

/** The Runs that failed consecutively, if that is persistent. `lost` is the number of the last ones that were lost, which `failures` does not count. */
export function persistentRunFailure({ record, last }: Pick<StackFacts, 'record' | 'last'>, lost = 0): Attempts | undefined {
  if (record.failingSince === undefined || !last) return undefined
  const attempts = { count: (record.failures ?? 0) + lost, sinceMs: Date.parse(record.failingSince), lastMs: endedAtMs(last) }
  return isPersistent(attempts) ? attempts : undefined
}

/** `Failed 12 times since 2026-06-01 10:31:05 UTC`. */
export function formatAttempts({ count, sinceMs }: Attempts): string {
  return `Failed ${count} times since ${formatDateTime(sinceMs)}`
}

/** As the beginning of a message; empty if the failure is not persistent. */
export const formatPersistent = (attempts: Attempts | undefined): string => (attempts ? `${formatAttempts(attempts)}. ` : '')
