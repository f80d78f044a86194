import type { ClientResponse } from './client-request.ts'

/** Calls back when the response has ended, also if that was while the request waited for something: otherwise it would stay counted. */
export function atEnd(response: ClientResponse, ended: () => void): void {
  if (response.closed || response.destroyed) ended()
  else response.once('close', ended)
}
