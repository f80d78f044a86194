import { hash, timingSafeEqual } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { AppStartError } from '../app-start-error.ts'
import { toAppStartError } from '../to-app-start-error.ts'
import { createToken, readToken } from '../token-file.ts'

const fileName = 'status-token'
/** What a header can have. */
const validToken = /^[\w.~+/=-]{16,}$/

/** The file with the token that reads queue and metrics of the process with this data directory. It grants nothing else. */
export const statusTokenPath = (dataDir: string): string => join(dataDir, fileName)

/**
 * The token of {@link statusTokenPath}, created at the first start, readable only by its owner. It is kept, so that Prometheus can use the file.
 * @throws {AppStartError} if the file cannot be used.
 */
export function openStatusToken(dataDir: string): string {
  const path = statusTokenPath(dataDir)
  try {
    const known = readToken(path)
    if (validToken.test(known)) return known
    if (known === '') return createToken(path)
  } catch (error) {
    throw toAppStartError(error, { dataDir, listen: '' })
  }
  throw new AppStartError(
    'DataDirectory',
    `${path} must contain at least 16 characters: letters, digits and _.~+/=-`,
    'delete it: the next start creates a token',
  )
}

/** The file with the URL of the health address of the process with this data directory, while it runs. */
export const statusUrlPath = (dataDir: string): string => join(dataDir, 'status-url')

/**
 * Records the health address, where the console is too, for `oarlock console`. The result removes the record.
 * @throws {AppStartError} if the file cannot be written.
 */
export function recordStatusUrl(dataDir: string, url: string): () => void {
  const path = statusUrlPath(dataDir)
  try {
    writeFileSync(path, `${url}\n`, { mode: 0o600 })
  } catch (error) {
    throw toAppStartError(error, { dataDir, listen: '' })
  }
  return () => rmSync(path, { force: true })
}

/** Reports whether the request has one of `tokens` as bearer token, or as password of any user. */
export function hasToken({ headers }: IncomingMessage, tokens: readonly (string | undefined)[]): boolean {
  const [scheme = '', value = ''] = (headers.authorization ?? '').split(' ', 2)
  const kind = scheme.toLowerCase()
  if (kind === 'bearer') return isOneOf(value, tokens)
  const password = () =>
    Buffer.from(value, 'base64')
      .toString()
      .replace(/^[^:]*:/, '')
  return kind === 'basic' && isOneOf(password(), tokens)
}

function isOneOf(given: string, tokens: readonly (string | undefined)[]): boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer')
  return given !== '' && tokens.some(token => token !== undefined && timingSafeEqual(digest(given), digest(token)))
}
