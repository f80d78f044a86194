/** Requests in flight per Run. */
const maxConcurrency = 8

/**
 * Calls `work` for every item, at most {@link maxConcurrency} at a time; results keep the order of the items. After an error no further
 * call is started; the first error is thrown when all running calls have ended.
 */
export async function mapConcurrently<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(items.length)
  const errors: unknown[] = []
  let next = 0
  const runNext = async (): Promise<void> => {
    while (next < items.length && errors.length === 0) {
      const index = next++
      try {
        results[index] = await work(items[index] as T)
      } catch (error) {
        errors.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(maxConcurrency, items.length) }, runNext))
  if (errors.length > 0) throw errors[0]
  return results
}
