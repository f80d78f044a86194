import { makeDirectories } from '../util/index.ts'
import { ServerStartError } from './storage/index.ts'

export function createDirectories(dataDir: string, pkiDir: string): void {
  withWriteErrors(dataDir, () => {
    makeDirectories(dataDir, 0o700)
    makeDirectories(pkiDir, 0o700)
  })
}

/** Runs `write` and converts its error to a {@link ServerStartError} with a remedy. */
export function withWriteErrors<T>(dataDir: string, write: () => T): T {
  try {
    return write()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOSPC') {
      throw new ServerStartError('DiskFull', `the disk of ${dataDir} is full: free some space and restart`, { cause: error })
    }
    throw new ServerStartError(
      'DataDirectoryUnwritable',
      `${dataDir} cannot be written (${message}): check its owner and mode, or choose another data directory`,
      {
        cause: error,
      },
    )
  }
}
