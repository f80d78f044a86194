/** A pass that takes long is followed by a pause this many times as long, so that a large fleet costs a quarter of a core at most. */
const pauseFactor = 3
/** A pass may also wait for the server: that costs nothing, and must not make the next one late. */
const maxPauseMs = 100

/**
 * Runs `pass` once after any number of kicks, one at a time, until `signal` aborts. A kick during a pass leads to one more.
 * `pass` may ask to be run again after so many milliseconds; an earlier kick comes first.
 */
export async function reconcileLoop(
  signal: AbortSignal,
  subscribe: (wake: () => void) => void,
  pass: () => Promise<number | undefined>,
): Promise<void> {
  let isWakeRequested = true
  let endWait: () => void = () => undefined
  const wake = () => {
    isWakeRequested = true
    endWait()
  }
  const onAbort = () => endWait()
  signal.addEventListener('abort', onAbort, { once: true })
  subscribe(wake)
  while (!signal.aborted) {
    // What else arrives in this turn of the event loop joins this pass.
    await new Promise<void>(resolve => setImmediate(resolve))
    isWakeRequested = false
    const startedMs = performance.now()
    const requeueAfterMs = await pass()
    if (signal.aborted) break
    const pauseMs = Math.min(maxPauseMs, Math.floor((performance.now() - startedMs) * pauseFactor))
    if (isWakeRequested && pauseMs === 0) continue
    const { promise, resolve } = Promise.withResolvers<void>()
    const waitMs = isWakeRequested ? pauseMs : requeueAfterMs
    // Kicks during the pause after a long pass wait for its end; later ones wake at once.
    const earliestMs = performance.now() + pauseMs
    let timer = waitMs === undefined ? undefined : setTimeout(resolve, Math.min(Math.max(waitMs, pauseMs), 0x7fff_ffff))
    endWait = () => {
      if (isWakeRequested && !signal.aborted) {
        const remainingMs = earliestMs - performance.now()
        if (remainingMs > 1) {
          clearTimeout(timer)
          timer = setTimeout(resolve, remainingMs)
          return
        }
      }
      resolve()
    }
    await promise
    clearTimeout(timer)
    endWait = () => undefined
  }
  signal.removeEventListener('abort', onAbort)
}
