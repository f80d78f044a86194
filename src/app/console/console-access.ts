import { join } from 'node:path'
import { toAppStartError } from '../to-app-start-error.ts'
import { createToken, readToken } from '../token-file.ts'

/** The file with the token by which `oarlock console` asks the process with this data directory for a link. A user who reads it can become its administrator. */
export const consoleTokenPath = (dataDir: string): string => join(dataDir, 'console-token')

/**
 * The token of {@link consoleTokenPath}, created at the first start, readable only by its owner.
 * @throws {AppStartError} if the file cannot be used.
 */
export function openConsoleToken(dataDir: string): string {
  const path = consoleTokenPath(dataDir)
  try {
    const known = readToken(path)
    return known.length >= 32 ? known : createToken(path)
  } catch (error) {
    throw toAppStartError(error, { dataDir, listen: '' })
  }
}

/** The link that signs in once: browsers do not send what is behind `#`. */
export const consoleLink = (url: string, secret: string): string => `${url}/console/#token=${secret}`
