const firstPauseMs = 2
const longestPauseMs = 100

/**
 * Waits until `get` gives something true and resolves with it; or, with a predicate, until that holds for what `get` gives. Asks
 * again at growing distance: after a tenth of the time waited so far. What `get` throws ends the wait.
 * @throws {Error} after `timeoutMs`, saying what was waited for, or what came last.
 */
export async function eventually<T>(get: () => T | Promise<T>, what: string, timeoutMs?: number): Promise<Exclude<T, false | undefined>>
export async function eventually<T>(get: () => T | Promise<T>, isWanted: (value: T) => boolean, timeoutMs?: number): Promise<T>
export async function eventually<T>(get: () => T | Promise<T>, wanted: string | ((value: T) => boolean), timeoutMs = 20_000): Promise<T> {
  const startMs = performance.now()
  for (;;) {
    const value = await get()
    if (typeof wanted === 'string' ? value : wanted(value)) return value
    const waitedMs = performance.now() - startMs
    if (waitedMs > timeoutMs)
      throw new Error(
        `did not happen within ${timeoutMs} ms: ${typeof wanted === 'string' ? wanted : `${wanted}; the last was ${JSON.stringify(value)}`}`,
      )
    await new Promise(resolve => setTimeout(resolve, Math.min(longestPauseMs, Math.max(firstPauseMs, waitedMs / 10))))
  }
}
