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
  /** The longest time between two reconciles of a key. */
  longestGapMs: number
  longestGapKey: string
  /** Most changes of the process that works on a key. */
  mostMoves: number
}

/** A time during which a process could not act. */
export type Pause = { readonly member: string; readonly fromMs: number; readonly toMs: number }

/**
 * Judges the reconciles of every key: pure. `untilMs` is when the load ended, so that a key without an owner at the end counts.
 * @param pauses of the processes: a call that had begun before one may end after it.
 */
export function judge(
  entries: readonly Entry[],
  pauses: readonly Pause[],
  { fromMs, untilMs }: { fromMs: number; untilMs: number },
): LedgerResult {
  const result = { reconciles: 0, lowerFences: 0, overlaps: 0, begunBefore: 0, longestGapMs: 0, longestGapKey: '', mostMoves: 0 }
  const byKey = Map.groupBy(entries, ({ key }) => key)
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
