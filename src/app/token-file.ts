import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** The token in a file; empty if it does not exist, or after a crash between its creation and the write. */
export const readToken = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8').trim() : '')

/** Writes a random token into a file that only its owner can read. */
export function createToken(path: string): string {
  const token = randomBytes(32).toString('base64url')
  writeFileSync(path, `${token}\n`, { mode: 0o600 })
  return token
}
