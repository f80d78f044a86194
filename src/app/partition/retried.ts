import { setTimeout as sleep } from 'node:timers/promises'

/** Calls `attempt` until it succeeds, with increasing delays. @returns undefined if `signal` was aborted. @throws errors that are final. */
export async function retried<Result>(
  attempt: () => Promise<Result>,
  {
    signal,
    isFinal = () => false,
    onError,
  }: { readonly signal: AbortSignal; isFinal?(error: unknown): boolean; onError(error: unknown): void },
): Promise<Result | undefined> {
  for (let delayMs = 200; !signal.aborted; delayMs = Math.min(delayMs * 2, 10_000)) {
    try {
      return await attempt()
    } catch (error) {
      if (signal.aborted) return undefined
      if (isFinal(error)) throw error
      onError(error)
      await sleep(delayMs, undefined, { signal }).catch(() => {})
    }
  }
  return undefined
}
