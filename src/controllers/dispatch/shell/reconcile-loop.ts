/** A pass is followed by a pause of this many times its duration, so that a large fleet costs at most a quarter of a core. */
const pauseFactor = 3
/** Bounds the pause: time that a pass spends waiting for the server costs no CPU and must not delay the next pass. */
const maxPauseMs = 100

/**
 * Runs `pass` until `signal` aborts: once at the start, then once for any number of wake-ups; never two at the same time. A wake-up during a
 * pass leads to one more pass. `pass` returns the milliseconds after which it is due again, or undefined; an earlier wake-up takes precedence.
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
  try {
    while (!signal.aborted) {
      // Changes that arrive in the same iteration of the event loop share this pass.
      await new Promise<void>(resolve => setImmediate(resolve))
      isWakeRequested = false
      const startedMs = performance.now()
      const requeueAfterMs = await pass()
      if (signal.aborted) break
      const pauseMs = Math.min(maxPauseMs, Math.floor((performance.now() - startedMs) * pauseFactor))
      if (isWakeRequested && pauseMs === 0) continue
      const { promise, resolve } = Promise.withResolvers<void>()
      const waitMs = isWakeRequested ? pauseMs : requeueAfterMs
      // A wake-up during the pause takes effect at its end; a later one takes effect immediately.
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
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
