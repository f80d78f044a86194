/** The result, if it comes in time. @throws {Error} after `ms` milliseconds, or what `result` throws. A later failure is ignored. */
export async function within<T>(result: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  })
  // It may fail later, when no one waits for it.
  result.catch(() => {})
  return await Promise.race([result, late]).finally(() => clearTimeout(timer))
}
