/** Of the ring in `sharding-processes.test.ts`. */
export const shardedDurations = { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 400 }
