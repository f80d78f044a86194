const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** npm forwards a Ctrl-C that the terminal has already sent to this process. */
const duplicateMs = 500

/**
 * Calls `onSignal` with 1, 2, 3, … for each SIGINT, SIGTERM and SIGHUP: a closed terminal must not leave Runs half done either.
 * Returns how to remove the handlers.
 */
export function onShutdownSignal(onSignal: (count: number) => void): () => void {
  let count = 0
  let lastMs = Number.NEGATIVE_INFINITY
  const handler = () => {
    const nowMs = performance.now()
    if (nowMs - lastMs < duplicateMs) return
    lastMs = nowMs
    onSignal(++count)
  }
  for (const signal of signals) process.on(signal, handler)
  return () => {
    for (const signal of signals) process.off(signal, handler)
  }
}
