/** What stands in a line: `line` is where, undefined while it does not. Only {@link FairQueue} writes it. */
export type FairQueueEntry = { priority: number; groupQueue: GroupQueue<unknown> | undefined }

/** First in, first out, for one group of one priority. `live` counts those whose `line` is this one; the rest moved up. */
export type GroupQueue<T> = {
  readonly level: PriorityLevel<T>
  readonly group: string
  entries: (T | undefined)[]
  head: number
  activeCount: number
}

/** The groups of one priority take turns: `turn` is the place in `ring` of the one that is next. */
type PriorityLevel<T> = {
  readonly priority: number
  readonly groups: Map<string, GroupQueue<T>>
  readonly ring: GroupQueue<T>[]
  nextIndex: number
}

/**
 * Entries that wait for a worker: higher priority first, within it one of each group after the other, and within a
 * group in the order they came. A group with a thousand entries therefore delays one with a single entry by one.
 */
export class FairQueue<T extends FairQueueEntry> {
  /** By falling priority. */
  readonly #lanes: PriorityLevel<T>[] = []
  #length = 0

  get length(): number {
    return this.#length
  }

  /** How many wait with each priority, highest first. */
  byPriority(): { priority: number; length: number }[] {
    return this.#lanes
      .map(({ priority, ring }) => ({ priority, length: ring.reduce((sum, line) => sum + line.activeCount, 0) }))
      .filter(({ length }) => length > 0)
  }

  /** Puts `entry` at the end of its group's line. */
  push(entry: T, group: string): void {
    let index = 0
    while (index < this.#lanes.length && (this.#lanes[index] as PriorityLevel<T>).priority > entry.priority) index++
    let lane = this.#lanes[index]
    if (lane?.priority !== entry.priority) {
      lane = { priority: entry.priority, groups: new Map(), ring: [], nextIndex: 0 }
      this.#lanes.splice(index, 0, lane)
    }
    let line = lane.groups.get(group)
    if (!line) {
      line = { level: lane, group, entries: [], head: 0, activeCount: 0 }
      lane.groups.set(group, line)
      lane.ring.push(line)
    }
    line.entries.push(entry)
    line.activeCount++
    entry.groupQueue = line as GroupQueue<unknown>
    this.#length++
  }

  /** Moves `entry` to where its raised priority belongs. */
  raisePriority(entry: T, priority: number): void {
    const line = entry.groupQueue as GroupQueue<T>
    line.activeCount--
    this.#length--
    entry.groupQueue = undefined
    entry.priority = priority
    compact(line)
    this.push(entry, line.group)
  }

  /** Takes out the one whose turn it is. */
  pop(): T | undefined {
    for (;;) {
      const lane = this.#lanes[0]
      if (!lane) return undefined
      while (lane.ring.length > 0) {
        if (lane.nextIndex >= lane.ring.length) lane.nextIndex = 0
        const line = lane.ring[lane.nextIndex] as GroupQueue<T>
        const entry = first(line)
        if (entry) {
          lane.nextIndex++
          entry.groupQueue = undefined
          line.activeCount--
          this.#length--
          return entry
        }
        lane.ring.splice(lane.nextIndex, 1)
        lane.groups.delete(line.group)
      }
      // Priorities are the caller's numbers: a lane for each one ever used would grow without bound.
      this.#lanes.shift()
    }
  }

  clear(): void {
    this.#lanes.length = 0
    this.#length = 0
  }
}

function first<T extends FairQueueEntry>(line: GroupQueue<T>): T | undefined {
  while (line.head < line.entries.length) {
    const entry = line.entries[line.head] as T
    line.entries[line.head++] = undefined
    if (line.head > 1_024 && line.head * 2 > line.entries.length) {
      line.entries = line.entries.slice(line.head)
      line.head = 0
    }
    if (entry.groupQueue === (line as GroupQueue<unknown>)) return entry
  }
  return undefined
}

/** Entries that moved up leave their place behind: swept when they are the most of a line. */
function compact<T extends FairQueueEntry>(line: GroupQueue<T>): void {
  if (line.entries.length - line.head <= line.activeCount * 2 + 1_024) return
  line.entries = [...new Set(line.entries.slice(line.head))].filter(entry => entry?.groupQueue === (line as GroupQueue<unknown>))
  line.head = 0
}
