/** Of the ring of `ShardedProcesses`. */
export const shardedDurations = { leaseDurationMs: 4_000, renewDeadlineMs: 2_500, retryPeriodMs: 400 }
