/**
 * Converts the signals of this process to those of a worker: the first SIGTERM or SIGINT drains, the second interrupts.
 * `dispose` removes the handlers.
 */
export function workerSignals(): { signal: AbortSignal; interruptSignal: AbortSignal; dispose(): void } {
  const drain = new AbortController()
  const interrupt = new AbortController()
  const onSignal = (): void => (drain.signal.aborted ? interrupt.abort() : drain.abort())
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  return {
    signal: drain.signal,
    interruptSignal: interrupt.signal,
    dispose: () => {
      process.off('SIGTERM', onSignal)
      process.off('SIGINT', onSignal)
    },
  }
}
