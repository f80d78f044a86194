import { setTimeout as sleep } from 'node:timers/promises'
import { formatDuration, type KStatus, parseDuration } from '../../../kubernetes/object/index.ts'
import type { EngineContext } from '../engine.ts'
import { EngineError, interruptedError } from '../engine-error.ts'

/** An object to wait for. `text` names it in messages; `poll` reads its status from the cluster. */
export type AwaitedObject = { text: string; poll(): Promise<KStatus> }

const defaultWaitTimeout = '5m'
/** The first poll interval; each further one is 1.5 times longer, up to the second. */
const initialPollMs = 100
const maxPollMs = 2_000
/** Objects named in the message of a timeout. */
const maxNamed = 5

/**
 * Polls until every object is Current. `onProgress` receives the number of Current objects and the text of one that is not.
 * @throws {EngineError} ApplyFailed as soon as one object is Failed, WaitTimeout after `timeoutMs` with the message of each pending object,
 * Interrupted when `signal` is aborted.
 */
export async function waitForCurrent(
  objects: readonly AwaitedObject[],
  options: { timeoutMs: number; signal: AbortSignal; onProgress?(current: number, pending: string | undefined): void },
): Promise<void> {
  const { timeoutMs, signal, onProgress } = options
  const deadline = performance.now() + timeoutMs
  let pending = objects.map(each => ({ ...each, message: '' }))
  for (let pollMs = initialPollMs; ; pollMs = Math.min(pollMs * 1.5, maxPollMs)) {
    if (signal.aborted) throw interruptedError('manifests', 'the wait', 'the inventory has every object that may exist')
    const results = await Promise.all(pending.map(async each => ({ ...each, result: await each.poll() })))
    const failure = results.find(({ result }) => result.status === 'Failed')
    if (failure) throw new EngineError('ApplyFailed', `${failure.text} has failed: ${failure.result.message}`, { retryable: true })
    pending = results
      .filter(({ result }) => result.status !== 'Current')
      .map(({ result, ...each }) => ({ ...each, message: result.message }))
    onProgress?.(objects.length - pending.length, pending[0]?.text)
    if (pending.length === 0) return
    if (performance.now() + pollMs > deadline) throw timeoutError(pending, timeoutMs)
    await sleep(pollMs, undefined, { signal }).catch(() => undefined)
  }
}

/** `spec.manifests.waitTimeout` in milliseconds. */
export function waitTimeoutMs({ spec }: EngineContext): number {
  return parseDuration(spec.manifests?.waitTimeout ?? defaultWaitTimeout)
}

function timeoutError(pending: readonly { text: string; message: string }[], timeoutMs: number): EngineError {
  const named = pending.slice(0, maxNamed).map(({ text, message }) => `${text} (${message})`)
  const more = pending.length > maxNamed ? `, and ${pending.length - maxNamed} more` : ''
  return new EngineError('WaitTimeout', `not Current after ${formatDuration(timeoutMs)}: ${named.join(', ')}${more}`, { retryable: true })
}
