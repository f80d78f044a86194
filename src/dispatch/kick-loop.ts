/**
 * Runs `pass` once after any number of kicks, one at a time, until `signal` aborts. A kick during a pass leads to one more.
 * `pass` may ask to be run again after so many milliseconds; an earlier kick comes first.
 */
export async function kickLoop(
  signal: AbortSignal,
  subscribe: (kick: () => void) => void,
  pass: () => Promise<number | undefined>,
): Promise<void> {
  let isKicked = true
  let wake: (() => void) | undefined
  const kick = () => {
    isKicked = true
    wake?.()
  }
  signal.addEventListener('abort', kick, { once: true })
  subscribe(kick)
  while (!signal.aborted) {
    if (isKicked) {
      // Lets the other changes that arrived in this turn of the loop join this pass.
      await Promise.resolve()
      isKicked = false
    }
    const againInMs = await pass()
    if (isKicked || signal.aborted) continue
    const { promise, resolve } = Promise.withResolvers<void>()
    wake = resolve
    const timer = againInMs === undefined ? undefined : setTimeout(resolve, Math.min(againInMs, 0x7fff_ffff))
    await promise
    clearTimeout(timer)
    wake = undefined
  }
}
