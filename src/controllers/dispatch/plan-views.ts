export type PlanViewsInput = {
  /** Slots that Runs wait for, by partition. */
  readonly startable: ReadonlyMap<string, number>
  /** Names of the workers that are idle or starting. */
  readonly workers: readonly string[]
  readonly slots: number
  /** Whether the dispatcher of the partition uses this worker. */
  readonly sees: (partition: string, worker: string) => boolean
}

export type PlannedViews = {
  /** For each new worker that is needed, the partition that must see it. */
  readonly needs: readonly string[]
  /** Workers that no waiting Run can use. */
  readonly unused: ReadonlySet<string>
}

/**
 * Plans workers where a dispatcher uses only a part of them: an idle worker is of no use to a Run whose partition does not see it. Each partition is given the workers that it
 * sees, first those that the fewest other waiting partitions see, and needs a new one for each that is missing. That may be some more than with the best distribution, never less.
 */
export function planViews({ startable, workers, slots, sees }: PlanViewsInput): PlannedViews {
  const waiting = [...startable].filter(([, count]) => count > 0)
  const unused = new Set(workers)
  const seenBy = new Map(workers.map(worker => [worker, waiting.filter(([partition]) => sees(partition, worker)).length]))
  const inOrder = workers.toSorted((a, b) => seenBy.get(a)! - seenBy.get(b)!)
  const needs: string[] = []
  for (const [partition, count] of waiting) {
    let missing = Math.ceil(count / slots)
    for (const worker of inOrder) {
      if (missing === 0) break
      if (sees(partition, worker) && unused.delete(worker)) missing--
    }
    for (; missing > 0; missing--) needs.push(partition)
  }
  return { needs, unused }
}
