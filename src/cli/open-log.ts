import { dirname, join } from 'node:path'
import { pino } from 'pino'
import { openLogFile } from '../app/index.ts'
import { makeDirectories } from '../kubernetes/util/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

/** The log of a server process: `--log FILE`, `-` for stderr; default `<data>/oarlock.log`. */
export function openLog({ log, logLevel }: { log?: string; logLevel: string }, dataDir: string): { logger: pino.Logger; close(): void } {
  const settings = { level: logLevel, base: undefined, redact: { paths: ['token', '*.token', 'password', '*.password'] } }
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
