const sliceMs = 4

/**
 * Visits many items and yields to the event loop every few milliseconds, so that other requests are served. State that the items refer
 * to may change meanwhile.
 */
export async function yieldEvery<T>(items: Iterable<T>, visit: (item: T) => void): Promise<void> {
  const slice = new TimeSlice()
  for (const item of items) {
    visit(item)
    if (slice.isExpired) await slice.yield()
  }
}

/** The same for other loops: `if (slice.isExpired) await slice.yield()`. */
export class TimeSlice {
  #startMs = performance.now()

  get isExpired(): boolean {
    return performance.now() - this.#startMs >= sliceMs
  }

  async yield(): Promise<void> {
    await nextSlice()
    this.#startMs = performance.now()
  }
}

// One slice per iteration of the event loop, shared by all loops: ten concurrent long lists take ten times as long, and no larger
// share of the event loop than one.
const waiting: (() => void)[] = []

/** Resolves in an iteration of the event loop in which no other slice runs: for long work that cannot be divided. */
export function nextSlice(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (waiting.push(resolve) === 1) setImmediate(release)
  return promise
}

function release(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(release)
}
