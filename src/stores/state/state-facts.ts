import type { PulumiFacts } from './state-types.ts'

/** What decides whether a Run of a Stack may start, without the state itself. */
export type StateFacts = {
  /** Number of the newest accepted version of any kind; 0 without one. */
  readonly newest: number
  /** Set for a state of Pulumi. */
  readonly pulumi?: PulumiFacts
  /** Set while a user or a tool, and not a Run, holds the lock. */
  readonly userLock?: { readonly holder: string; readonly sinceMs: number }
}
