import { dirname, join } from 'node:path'
import { pino, stdSerializers } from 'pino'
import { openLogFile } from '../app/index.ts'
import { makeDirectories } from '../kubernetes/util/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

/** The log of a server process: `--log FILE`, `-` for stderr; default `<data>/oarlock.log`. */
export function openLog({ log, logLevel }: { log?: string; logLevel: string }, dataDir: string): { logger: pino.Logger; close(): void } {
  const settings = {
    level: logLevel,
    base: undefined,
    redact: { paths: ['token', '*.token', 'password', '*.password'] },
    ...(logLevel !== 'debug' && { serializers: { err: serializeError } }),
  }
  if (log === '-') return { logger: pino(settings, pino.destination({ fd: 2, sync: true })), close: () => {} }
  const path = log ?? join(dataDir, 'oarlock.log')
  try {
    makeDirectories(dirname(path), 0o700)
    const file = openLogFile(path)
    return { logger: pino(settings, file), close: file.close }
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
