/**
 * Calls `run` when `signal` aborts; returns how to stop that. All users of one signal share one listener: an EventTarget
 * compares each new listener with all it has, which at 100 requests under one signal costs more than sending them.
 */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  let waiting = waitingOn.get(signal)
  if (!waiting) {
    const created = new Set<() => void>()
    waiting = created
    waitingOn.set(signal, created)
    signal.addEventListener('abort', () => {
      for (const each of created) each()
      created.clear()
    })
  }
  waiting.add(run)
  return () => waiting.delete(run)
}

const waitingOn = new WeakMap<AbortSignal, Set<() => void>>()
