/** Exponential backoff: the first delay, and the upper bound. */
export type Backoff = { minMs: number; maxMs: number }

/** The delay after `failures` consecutive failures (1 or more): `minMs`, doubled with each further one, at most `maxMs`. No jitter. */
export function exponentialDelayMs(failures: number, { minMs, maxMs }: Backoff): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(52, Math.max(0, failures - 1)))
}

/**
 * The delay before attempt `failures + 1`, spread evenly over the upper half of its step so that many clients do not retry
 * together: 0.8–1.6 s, 1.6–3.2 s, … and 15–30 s for the default of list+watch. `random` is in [0, 1).
 */
export function jitteredDelayMs(failures: number, { minMs, maxMs }: Backoff, random: number): number {
  const upper = exponentialDelayMs(Math.max(1, failures) + 1, { minMs, maxMs })
  const lower = Math.max(Math.min(minMs, maxMs), upper / 2)
  return lower + random * (upper - lower)
}
