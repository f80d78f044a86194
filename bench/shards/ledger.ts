/** What reconciles reported, in the order of CLOCK_MONOTONIC. */
export type Entry = {
  readonly key: string
  readonly member: string
  readonly fence: number
  readonly beginMs: number
  /** Undefined: the process ended before. */
  endMs: number | undefined
  /** Whether the API server accepted its write. */
  wrote: boolean
}

export type LedgerResult = {
  reconciles: number
  /** Reconciles that began with a lower fence than one of the same key that had begun before. */
  lowerFences: number
  /** Reconciles that began while one of another process on the same key was under way. */
  overlaps: number
  /** Of these overlaps: the earlier call had begun before its process was paused or cut off, and ended afterwards. */
  begunBefore: number
  /**
   * Calls that a process had been allowed to begin when it was paused, and reported as begun when it continued: not among the lower fences. A process
   * has one thread, so there is at most one for each pause.
   */
  allowedBefore: number
  /** The longest time between two reconciles of a key. */
  longestGapMs: number
  longestGapKey: string
  /** Most changes of the process that works on a key. */
  mostMoves: number
}

/** A time during which a process could not act. */
export type Pause = { readonly member: string; readonly fromMs: number; readonly toMs: number }

/** How soon after a pause the call is reported that was allowed before it. */
const straddleMs = 20

/** The calls that were allowed before a pause and reported after it, at most one for each pause; none of them has written anything. */
function straddling(entries: readonly Entry[], pauses: readonly Pause[]): Set<Entry> {
  const found = new Set<Entry>()
  for (const { member, toMs } of pauses) {
    const first = entries
      .filter(entry => entry.member === member && !entry.wrote && entry.beginMs >= toMs - 1 && entry.beginMs <= toMs + straddleMs)
      .sort((a, b) => a.beginMs - b.beginMs)[0]
    if (first && entries.some(({ key, fence, beginMs }) => key === first.key && fence > first.fence && beginMs < first.beginMs))
      found.add(first)
  }
  return found
}

/**
 * Judges the reconciles of every key: pure. `untilMs` is when the load ended, so that a key without an owner at the end counts.
 * @param pauses of the processes: a call that had begun before one may end after it.
 */
export function judge(
  entries: readonly Entry[],
  pauses: readonly Pause[],
  { fromMs, untilMs }: { fromMs: number; untilMs: number },
): LedgerResult {
  const allowed = straddling(entries, pauses)
  const counts = { reconciles: 0, lowerFences: 0, overlaps: 0, begunBefore: 0, allowedBefore: allowed.size }
  const result = { ...counts, longestGapMs: 0, longestGapKey: '', mostMoves: 0 }
  const byKey = Map.groupBy(
    entries.filter(entry => !allowed.has(entry)),
    ({ key }) => key,
  )
  for (const [key, own] of byKey) {
    const ordered = own.toSorted((a, b) => a.beginMs - b.beginMs)
    let highest = 0
    let moves = 0
    let lastMs = fromMs
    for (const [index, entry] of ordered.entries()) {
      if (entry.beginMs < fromMs || entry.beginMs > untilMs) continue
      result.reconciles++
      const previous = ordered[index - 1]
      if (entry.fence < highest) result.lowerFences++
      highest = Math.max(highest, entry.fence)
      if (previous && previous.member !== entry.member) moves++
      for (const earlier of ordered.slice(Math.max(0, index - 20), index)) {
        if (earlier.member === entry.member || earlier.endMs === undefined || earlier.endMs <= entry.beginMs) continue
        result.overlaps++
        const { member, beginMs, endMs } = earlier
        if (pauses.some(pause => pause.member === member && beginMs <= pause.fromMs + 1 && endMs >= pause.toMs - 1)) result.begunBefore++
      }
      const gapMs = entry.beginMs - lastMs
      if (gapMs > result.longestGapMs) {
        result.longestGapMs = gapMs
        result.longestGapKey = key
      }
      lastMs = entry.beginMs
    }
    const tailMs = untilMs - lastMs
    if (tailMs > result.longestGapMs) {
      result.longestGapMs = tailMs
      result.longestGapKey = key
    }
    result.mostMoves = Math.max(result.mostMoves, moves)
  }
  return result
}
