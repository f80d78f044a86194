const firstIntervalMs = 2
const longestIntervalMs = 100

/**
 * Polls `get` until it returns a truthy value, or one for which the predicate holds, and resolves with it. The interval
 * grows: a tenth of the time waited so far. An error of `get` ends the wait.
 * @throws {Error} after `timeoutMs`, with the description or the last value.
 */
export async function eventually<T>(get: () => T | Promise<T>, what: string, timeoutMs?: number): Promise<Exclude<T, false | undefined>>
export async function eventually<T>(get: () => T | Promise<T>, isExpected: (value: T) => boolean, timeoutMs?: number): Promise<T>
export async function eventually<T>(get: () => T | Promise<T>, expected: string | ((value: T) => boolean), timeoutMs = 20_000): Promise<T> {
  const startMs = performance.now()
  for (;;) {
    const value = await get()
    if (typeof expected === 'string' ? value : expected(value)) return value
    const waitedMs = performance.now() - startMs
    if (waitedMs > timeoutMs)
      throw new Error(
        `timed out after ${timeoutMs} ms: ${typeof expected === 'string' ? expected : `${expected}; the last value was ${JSON.stringify(value)}`}`,
      )
    await new Promise(resolve => setTimeout(resolve, Math.min(longestIntervalMs, Math.max(firstIntervalMs, waitedMs / 10))))
  }
}
