import { ServerStartError } from '../kubernetes/server/index.ts'
import { UnusableDirectoryError } from '../kubernetes/util/index.ts'
import { StateStoreError } from '../stores/state/index.ts'
import { AppStartError, DataInUseError } from './app-start-error.ts'

/** Converts the errors of modules during a start to {@link AppStartError}; returns unknown errors unchanged. */
export function toAppStartError(error: unknown, { dataDir, listen }: { dataDir: string; listen: string }): unknown {
  if (error instanceof ServerStartError) {
    if (error.isAddressError) return listenError('API server', '--listen', listen, error)
    if (error.code === 'DataInUse') return new DataInUseError(error.message, undefined, error)
    // Its message contains the remedy.
    return new AppStartError('DataDirectory', error.message, undefined, error)
  }
  if (error instanceof StateStoreError) {
    if (error.code === 'InUse') return new DataInUseError(`the state store of ${dataDir} is in use`, dataHints.InUse, error)
    return new AppStartError(
      'DataDirectory',
      `failed to open the state store of ${dataDir}: ${error.message}`,
      dataHints[error.code] ?? 'choose another data directory with --data',
      error,
    )
  }
  if (error instanceof UnusableDirectoryError) return new AppStartError('DataDirectory', error.message, error.hint, error)
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC') return new AppStartError('DataDirectory', `the disk of ${dataDir} is full`, dataHints.DiskFull, error)
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS' || code === 'ENOTDIR' || code === 'ENOENT') {
    return new AppStartError('DataDirectory', `failed to write to ${dataDir} (${code})`, dataHints.DataDirectoryUnwritable, error)
  }
  return error
}

const dataHints: Record<string, string> & { DiskFull: string; DataDirectoryUnwritable: string } = {
  DataTooNew: 'nothing was changed: use the newer version of oarlock that wrote it, or choose another directory with --data',
  InUse: 'stop the other process, or choose another directory with --data',
  DiskFull: 'free some space and start again: no acknowledged write is lost',
  Corrupt: 'restore the directory from a backup, or choose another directory with --data',
  StateKeyMismatch: 'restore the file keys/state.key of this data directory',
  DataDirectoryUnwritable: 'check its owner and mode, or choose another directory with --data',
}

/** An address that cannot be listened on, and the flag to choose another. */
export function listenError(what: string, flag: string, address: string, cause: unknown): AppStartError {
  const error = cause as NodeJS.ErrnoException & { cause?: NodeJS.ErrnoException }
  const code = error.cause?.code ?? error.code
  return new AppStartError(
    'Listen',
    code === 'EADDRINUSE'
      ? `${address}, the address of the ${what}, is in use by another process`
      : `failed to listen on ${address}, the address of the ${what} (${code})`,
    `${code === 'EADDRINUSE' ? 'stop the other process, or choose' : 'choose'} another with ${flag} HOST:PORT (port 0 picks a free one)`,
    cause,
  )
}
