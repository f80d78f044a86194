/** Maximum number of characters of a Stack's name that become part of the names of its Runs. */
export const maxStackNameChars = 40

/** After this many consecutive lost Runs the next one is delayed with the backoff of a failed Run. */
export const lostRunLimit = 5

/** Minimum age of a waiting Run before a newer one supersedes it, so that changes in quick succession create one Run. */
export const supersedeAfterMs = 1_000

/** Failures because a program is not installed on the worker, which an administrator changes without changing the Stack. */
export const missingProgramReasons: ReadonlySet<string | undefined> = new Set(['EngineNotFound', 'PackageManagerNotFound'])

/** Interval at which a Stack whose engine or package manager is not installed retries. */
export const programRecheckMs = 5 * 60_000

/** Interval at which a Run that found the state locked is repeated, where the lock cannot be read without a Run. */
export const stateLockRetryMs = 10_000

/**
 * Age from which the phases of a running Run are reported in the Stack's status. Of a shorter Run only start and end are
 * reported, which saves a write for most Runs.
 */
export const reportProgressAfterMs = 2_000

/**
 * How many Stacks whose Run waits in the queue are reported per second by each process; the others follow. A change of thousands of Stacks costs one write of
 * each status when its Run ends, and for those that wait for longest a second one. 100 at a time are reported immediately.
 */
export const queuedReportRate = { qps: 5, burst: 100 } as const

/** Maximum number of characters of a Run's message that a condition or an event quotes. */
export const maxQuotedChars = 1_000

/** Delays between attempts to create a Run that the server rejects. */
export const rejectedRunBackoff = { minMs: 5_000, maxMs: 300_000 } as const
