/**
 * Calls `run` when `signal` aborts; returns a function that cancels this. All callers share one listener per signal: an
 * EventTarget compares each new listener with the existing ones, which for 100 requests with one signal costs more than
 * sending them.
 */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  let callbacks = callbacksBySignal.get(signal)
  if (!callbacks) {
    const created = new Set<() => void>()
    callbacks = created
    callbacksBySignal.set(signal, created)
    signal.addEventListener('abort', () => {
      for (const callback of created) callback()
      created.clear()
    })
  }
  callbacks.add(run)
  return () => callbacks.delete(run)
}

const callbacksBySignal = new WeakMap<AbortSignal, Set<() => void>>()

/** The reason of an aborted signal as an Error. */
export function abortError({ reason }: AbortSignal): Error {
  return reason instanceof Error ? reason : new Error('aborted', { cause: reason })
}
