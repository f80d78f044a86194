import { type Log, makeDataDirectory, makeDirectories, UnusableDirectoryError } from '../util/index.ts'
import { ServerStartError } from './storage/index.ts'

export function createDirectories(dataDir: string, pkiDir: string, log: Pick<Log, 'warn'>): void {
  withWriteErrors(dataDir, () => {
    const changed = makeDataDirectory(dataDir)
    if (changed !== undefined) log.warn({ dataDir }, changed)
    makeDirectories(pkiDir, 0o700)
  })
}

/** Runs `write` and converts its error to a {@link ServerStartError} with a remedy. */
export function withWriteErrors<T>(dataDir: string, write: () => T): T {
  try {
    return write()
  } catch (error) {
    throw writeErrorOf(dataDir, error as NodeJS.ErrnoException)
  }
}

/** Runs `write` and converts errors of the file system as {@link withWriteErrors} does; others, such as a key that cannot be parsed, stay. */
export async function withFileErrors<T>(dataDir: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    const { syscall } = error as NodeJS.ErrnoException
    throw syscall === undefined ? error : writeErrorOf(dataDir, error as NodeJS.ErrnoException)
  }
}

function writeErrorOf(dataDir: string, error: NodeJS.ErrnoException): ServerStartError {
  const { code, message } = error
  if (error instanceof UnusableDirectoryError)
    return new ServerStartError('DataDirectoryUnwritable', `${message}: ${error.hint}`, { cause: error })
  if (code === 'ENOSPC')
    return new ServerStartError('DiskFull', `the disk of ${dataDir} is full: free some space and restart`, { cause: error })
  return new ServerStartError(
    'DataDirectoryUnwritable',
    `${dataDir} cannot be written (${message}): check its owner and mode, or choose another data directory`,
    { cause: error },
  )
}
