/** Revisions count milliseconds from this time. */
export const revisionEpochMs = Date.UTC(2026, 0, 1)

const countersPerMs = 128
const partitions = 64
const step = countersPerMs * partitions
const largestMs = 2 ** 40 - 1

/**
 * The resource version that follows `last`: 40 bits of milliseconds since 2026-01-01, 6 of partition, 7 of counter.
 * Strictly greater than `last` for any clock (invariant 6): after the clock steps back, or after more than 128 revisions in a
 * millisecond, the milliseconds run ahead of the clock until it catches up.
 * @throws {RangeError} after the year 2060, when 40 bits overflow.
 */
export function nextRevision(last: number, nowMs: number, partition: number): number {
  const lastMs = Math.floor(last / step)
  const ms = Math.max(0, Math.floor(nowMs) - revisionEpochMs, lastMs)
  const fresh = ms * step + partition * countersPerMs
  if (fresh > last) return inRange(fresh)
  const lastPartition = Math.floor(last / countersPerMs) % partitions
  if (lastPartition === partition && last % countersPerMs < countersPerMs - 1) return last + 1
  return inRange((lastMs + 1) * step + partition * countersPerMs)
}

/** The revision that is `ms` later, for limits: no server has assigned it. */
export const laterRevision = (revision: number, ms: number): number => inRange(revision + Math.floor(ms) * step)

/** How far a revision that another server assigned may be ahead of one's own clock. */
export const maxLeadMs = 60_000

/** Whether the clock that shows `nowMs` must not be raised to the revision: with it, a server whose clock is wrong would take all others along. */
export const isTooFarAhead = (revision: number, nowMs: number): boolean => readRevision(revision).atMs - nowMs > maxLeadMs

/** The time, partition and counter that a revision is made of. */
export function readRevision(revision: number): { atMs: number; partition: number; counter: number } {
  return {
    atMs: Math.floor(revision / step) + revisionEpochMs,
    partition: Math.floor(revision / countersPerMs) % partitions,
    counter: revision % countersPerMs,
  }
}

/** Parses a resource version sent by a client; undefined when it is not an integer below 2^53. */
export function parseRevision(text: string): number | undefined {
  if (text.length === 0 || text.length > 16) return undefined
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 48 || code > 57) return undefined
  }
  const revision = Number(text)
  return Number.isSafeInteger(revision) ? revision : undefined
}

function inRange(revision: number): number {
  if (revision / step > largestMs) throw new RangeError(`revision ${revision} needs more than 40 bits of milliseconds: is the clock right?`)
  return revision
}
