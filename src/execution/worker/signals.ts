/** Converts the signals of this process to those of a worker: the first SIGTERM or SIGINT drains, the second interrupts. */
export function workerSignals(): { signal: AbortSignal; interruptSignal: AbortSignal } {
  const drain = new AbortController()
  const interrupt = new AbortController()
  const onSignal = (): void => (drain.signal.aborted ? interrupt.abort() : drain.abort())
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  return { signal: drain.signal, interruptSignal: interrupt.signal }
}

/** Calls `listener` when `signal` is aborted, or now if it already is. Returns a function that unsubscribes. */
export function onceAborted(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal?.aborted) {
    listener()
    return () => {}
  }
  signal?.addEventListener('abort', listener, { once: true })
  return () => signal?.removeEventListener('abort', listener)
}
