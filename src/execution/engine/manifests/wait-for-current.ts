import { setTimeout as sleep } from 'node:timers/promises'
import { formatDuration } from '../../../kubernetes/object/index.ts'
import { EngineError, interruptedError } from '../engine-error.ts'
import type { KStatus } from './kstatus.ts'

export type AwaitedObject = { text: string; poll(): Promise<KStatus> }

/** How often objects are looked at: at first after 100 ms, then ever slower up to this. */
const slowestLookMs = 2_000
const maxNamed = 5

/**
 * Looks again and again until every object is Current. `onProgress` hears how many are, and the text of one that is not.
 * @throws {EngineError} ApplyFailed as soon as one has failed, WaitTimeout after `timeoutMs` with what each of the others waits for,
 * Interrupted when `signal` is aborted.
 */
export async function waitForCurrent(
  waited: readonly AwaitedObject[],
  options: { timeoutMs: number; signal: AbortSignal; onProgress?(current: number, waitsFor: string | undefined): void },
): Promise<void> {
  const { timeoutMs, signal, onProgress } = options
  const deadline = performance.now() + timeoutMs
  let open = waited.map(each => ({ ...each, message: '' }))
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 1.5, slowestLookMs)) {
    if (signal.aborted) throw interruptedError('manifests', 'the wait')
    const results = await Promise.all(open.map(async each => ({ ...each, result: await each.poll() })))
    const failure = results.find(({ result }) => result.status === 'Failed')
    if (failure) throw new EngineError('ApplyFailed', `${failure.text} has failed: ${failure.result.message}`, { retryable: true })
    open = results.filter(({ result }) => result.status !== 'Current').map(({ result, ...each }) => ({ ...each, message: result.message }))
    onProgress?.(waited.length - open.length, open[0]?.text)
    if (open.length === 0) return
    if (performance.now() + pauseMs > deadline) throw timedOut(open, timeoutMs)
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
  }
}

function timedOut(open: readonly { text: string; message: string }[], timeoutMs: number): EngineError {
  const named = open.slice(0, maxNamed).map(({ text, message }) => `${text} (${message})`)
  const more = open.length > maxNamed ? `, and ${open.length - maxNamed} more` : ''
  return new EngineError('WaitTimeout', `not Current after ${formatDuration(timeoutMs)}: ${named.join(', ')}${more}`, { retryable: true })
}
