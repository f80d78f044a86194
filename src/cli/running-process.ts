import { readFileSync } from 'node:fs'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

const timeoutMs = 5_000

/** A line that the process with a data directory has recorded there. @throws {CliError} unreachable, if it cannot be read. */
export function readRecordedLine(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw notRunning(`failed to read ${path} (${(error as NodeJS.ErrnoException).code})`)
  }
}

/** A response of the process within five seconds. @param what is there, for the message. @throws {CliError} unreachable, if it does not respond. */
export async function fetchFromProcess(what: string, url: string, path: string, options: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(`${url}${path}`, { ...options, signal: AbortSignal.timeout(timeoutMs) })
  } catch (error) {
    const { cause, name } = error as { cause?: NodeJS.ErrnoException; name: string }
    const reason = name === 'TimeoutError' ? `no response within ${timeoutMs / 1_000} s` : (cause?.code ?? cause?.message ?? name)
    throw notRunning(`${what} at ${url} does not respond (${reason})`)
  }
}

const notRunning = (message: string) =>
  new CliError(message, {
    exitCode: exitCodes.unreachable,
    hint: 'start "oarlock up", or name the data directory of a running process with --data',
  })
