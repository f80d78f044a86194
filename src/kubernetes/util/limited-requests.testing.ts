import { rejects } from 'node:assert/strict'
import type { LimitedRequests } from './limited-requests.ts'

/** Aborts a request that does not end, which must reject with the reason of its signal, and another one meanwhile. Returns the signal. */
export async function abortRequest(requests: LimitedRequests<string, string>): Promise<AbortSignal> {
  const abort = new AbortController()
  const reason = new Error('the browser has gone away')
  const pending = rejects(requests.request('loop', abort.signal), reason)
  await rejects(requests.request('hello'), /has a request already/)
  abort.abort(reason)
  await pending
  return abort.signal
}
