const sliceMs = 4

/**
 * Visits many items without keeping others waiting: every few milliseconds they have a turn of the event loop. What the items stand
 * for may change meanwhile.
 */
export async function yieldEvery<T>(items: Iterable<T>, visit: (item: T) => void): Promise<void> {
  const pace = new TimeSlice()
  for (const item of items) {
    visit(item)
    if (pace.isExpired) await pace.yield()
  }
}

/** The same for loops of their own: `if (pace.isOver) await pace.rest()`. */
export class TimeSlice {
  #startMs = performance.now()

  get isExpired(): boolean {
    return performance.now() - this.#startMs >= sliceMs
  }

  async yield(): Promise<void> {
    await nextIteration()
    this.#startMs = performance.now()
  }
}

// One for each turn of the event loop, whoever waits: ten long lists at once take ten times as long, and no more of a turn than one.
const waiting: (() => void)[] = []

function nextIteration(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (waiting.push(resolve) === 1) setImmediate(release)
  return promise
}

function release(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(release)
}
