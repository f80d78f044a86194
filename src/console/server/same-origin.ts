import type { IncomingMessage } from 'node:http'
import { StatusError } from '../../kubernetes/object/index.ts'

/** A page of another site must not use the session, nor sign the browser in as another user (CSRF). @throws {StatusError} */
export function requireSameOrigin({ headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site']
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
  const { origin, host } = headers
  if (isForeign || (origin !== undefined && hostOf(origin) !== host))
    throw new StatusError('Forbidden', 'requests of other sites are rejected')
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host
  } catch {
    return undefined
  }
}
