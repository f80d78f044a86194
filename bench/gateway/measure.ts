/** Latencies of requests that are sent at a rate, whatever the answers take. */
export type Latencies = { readonly p50Ms: number; readonly p99Ms: number; readonly count: number }

export function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
}

export function latenciesOf(values: readonly number[]): Latencies {
  const sorted = [...values].sort((a, b) => a - b)
  return { p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99), count: sorted.length }
}

export const median = (values: readonly number[]): number =>
  quantile(
    [...values].sort((a, b) => a - b),
    0.5,
  )

/** How many requests a second `connections` closed loops get. */
export async function closedLoop(seconds: number, connections: number, send: (index: number) => Promise<unknown>): Promise<number> {
  const endMs = performance.now() + seconds * 1_000
  let next = 0
  let done = 0
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (performance.now() < endMs) {
        await send(next++)
        done++
      }
    }),
  )
  return done / seconds
}

/**
 * Sends at a rate; a latency counts from the moment at which the request was due, so that a stall is seen by all that it delays.
 * @throws {Error} if more requests wait than are sent in 2 s: the rate is not sustained.
 */
export async function openLoop(seconds: number, perSecond: number, send: (index: number) => Promise<unknown>): Promise<number[]> {
  const latencies: number[] = []
  const startMs = performance.now()
  const total = Math.round(seconds * perSecond)
  const pending: Promise<void>[] = []
  let failure: Error | undefined
  for (let index = 0; index < total; ) {
    const dueCount = Math.min(total, Math.floor(((performance.now() - startMs) / 1_000) * perSecond) + 1)
    for (; index < dueCount; index++) {
      const dueMs = startMs + (index / perSecond) * 1_000
      const done = () => void latencies.push(performance.now() - dueMs)
      pending.push(
        send(index).then(done, error => {
          failure ??= error as Error
        }),
      )
    }
    if (index - latencies.length > 2 * perSecond)
      failure ??= new Error(`${Math.round(perSecond)} requests/s are not sustained: ${latencies.length} of ${index} are answered`)
    if (failure) break
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  await Promise.all(pending)
  if (failure) throw failure
  return latencies
}
