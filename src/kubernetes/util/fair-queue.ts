/** An entry of the queue. `groupQueue` is where it waits; undefined while it does not. Only {@link FairQueue} writes it. */
export type FairQueueEntry = { priority: number; groupQueue: GroupQueue<unknown> | undefined }

/** One group within one priority, first in, first out. `activeCount` counts the entries whose `groupQueue` this is; the others were moved up. */
export type GroupQueue<T> = {
  readonly level: PriorityLevel<T>
  readonly group: string
  entries: (T | undefined)[]
  head: number
  activeCount: number
}

/** The groups of one priority, served round-robin: `nextIndex` is the position in `ring` of the next one. */
type PriorityLevel<T> = {
  readonly priority: number
  readonly groups: Map<string, GroupQueue<T>>
  readonly ring: GroupQueue<T>[]
  nextIndex: number
}

/**
 * Entries that wait for a worker: by priority, then round-robin over the groups, then first in, first out within a group.
 * A group with a thousand entries therefore delays a group with one entry by one.
 */
export class FairQueue<T extends FairQueueEntry> {
  /** In descending priority. */
  readonly #levels: PriorityLevel<T>[] = []
  #length = 0

  get length(): number {
    return this.#length
  }

  /** The number of entries of each priority, highest first. */
  byPriority(): { priority: number; length: number }[] {
    return this.#levels
      .map(({ priority, ring }) => ({ priority, length: ring.reduce((sum, groupQueue) => sum + groupQueue.activeCount, 0) }))
      .filter(({ length }) => length > 0)
  }

  /** Appends `entry` to its group. */
  push(entry: T, group: string): void {
    let index = 0
    while (index < this.#levels.length && (this.#levels[index] as PriorityLevel<T>).priority > entry.priority) index++
    let level = this.#levels[index]
    if (level?.priority !== entry.priority) {
      level = { priority: entry.priority, groups: new Map(), ring: [], nextIndex: 0 }
      this.#levels.splice(index, 0, level)
    }
    let groupQueue = level.groups.get(group)
    if (!groupQueue) {
      groupQueue = { level, group, entries: [], head: 0, activeCount: 0 }
      level.groups.set(group, groupQueue)
      level.ring.push(groupQueue)
    }
    groupQueue.entries.push(entry)
    groupQueue.activeCount++
    entry.groupQueue = groupQueue as GroupQueue<unknown>
    this.#length++
  }

  /** Moves `entry` to a higher priority. */
  raisePriority(entry: T, priority: number): void {
    const groupQueue = entry.groupQueue as GroupQueue<T>
    groupQueue.activeCount--
    this.#length--
    entry.groupQueue = undefined
    entry.priority = priority
    compact(groupQueue)
    this.push(entry, groupQueue.group)
  }

  /** Removes and returns the next entry. */
  pop(): T | undefined {
    for (;;) {
      const level = this.#levels[0]
      if (!level) return undefined
      while (level.ring.length > 0) {
        if (level.nextIndex >= level.ring.length) level.nextIndex = 0
        const groupQueue = level.ring[level.nextIndex] as GroupQueue<T>
        const entry = first(groupQueue)
        if (entry) {
          level.nextIndex++
          entry.groupQueue = undefined
          groupQueue.activeCount--
          this.#length--
          return entry
        }
        level.ring.splice(level.nextIndex, 1)
        level.groups.delete(groupQueue.group)
      }
      // Priorities are chosen by callers: keeping a level for each one ever used would grow without bound.
      this.#levels.shift()
    }
  }

  clear(): void {
    this.#levels.length = 0
    this.#length = 0
  }
}

function first<T extends FairQueueEntry>(groupQueue: GroupQueue<T>): T | undefined {
  while (groupQueue.head < groupQueue.entries.length) {
    const entry = groupQueue.entries[groupQueue.head] as T
    groupQueue.entries[groupQueue.head++] = undefined
    if (groupQueue.head > 1_024 && groupQueue.head * 2 > groupQueue.entries.length) {
      groupQueue.entries = groupQueue.entries.slice(groupQueue.head)
      groupQueue.head = 0
    }
    if (entry.groupQueue === (groupQueue as GroupQueue<unknown>)) return entry
  }
  return undefined
}

/** Entries that were moved up leave stale references behind: removes them once they are the majority. */
function compact<T extends FairQueueEntry>(groupQueue: GroupQueue<T>): void {
  if (groupQueue.entries.length - groupQueue.head <= groupQueue.activeCount * 2 + 1_024) return
  groupQueue.entries = [...new Set(groupQueue.entries.slice(groupQueue.head))].filter(
    entry => entry?.groupQueue === (groupQueue as GroupQueue<unknown>),
  )
  groupQueue.head = 0
}
