import { dirname, join } from 'node:path'
import { pino, stdSerializers } from 'pino'
import { openLogFile } from '../app/index.ts'
import { makeDirectories } from '../kubernetes/util/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

export type OpenedLog = {
  readonly logger: pino.Logger
  /** Writes what was held back, and from then on every line. */
  begin(): void
  close(): void
}

/** Lines of a start. More are lost: a process that logs so many has other trouble. */
const maxHeldLines = 1_000

/**
 * The log of a server process: `--log FILE`, `-` for stderr; default `<data>/oarlock.log`.
 * @param options `held`: nothing is written to a file before `begin`, because it is that of another process if that uses the data directory.
 */
export function openLog(
  { log, logLevel }: { log?: string; logLevel: string },
  dataDir: string,
  { held = false }: { held?: boolean } = {},
): OpenedLog {
  const settings = {
    level: logLevel,
    base: undefined,
    redact: { paths: ['token', '*.token', 'password', '*.password'] },
    ...(logLevel !== 'debug' && { serializers: { err: serializeError } }),
  }
  if (log === '-') return { logger: pino(settings, pino.destination({ fd: 2, sync: true })), begin: () => {}, close: () => {} }
  const path = log ?? join(dataDir, 'oarlock.log')
  try {
    makeDirectories(dirname(path), 0o700)
    const file = openLogFile(path)
    const lines: string[] = []
    let isHeld = held
    const write = (line: string) => {
      if (!isHeld) file.write(line)
      else if (lines.length < maxHeldLines) lines.push(line)
    }
    const begin = () => {
      isHeld = false
      for (const line of lines.splice(0)) file.write(line)
    }
    return { logger: pino(settings, { write }), begin, close: file.close }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const hint = code === 'ENOSPC' ? 'free some space' : 'check its owner and mode, or choose another data directory with --data'
    throw new CliError(`failed to write ${path} (${code})`, { exitCode: exitCodes.dataDirectory, hint, cause: error })
  }
}

/** Responses and broken connections. Compared by name: importing the client for its classes would cost servers 2 MB. */
const remoteErrors = ['StatusError', 'ConnectionError']

/** The stack of an error of a server shows only who sent the request, and such errors are logged at every attempt. */
function serializeError(error: Error): object {
  const { name, message, cause } = error
  const isRemote = [error, cause].some(each => each instanceof Error && remoteErrors.includes(each.name))
  return isRemote ? { type: name, message } : stdSerializers.err(error)
}
