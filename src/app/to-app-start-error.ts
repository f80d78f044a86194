import { ServerStartError } from '../kubernetes/server/index.ts'
import { StateStoreError } from '../stores/state/index.ts'
import { AppStartError } from './app-start-error.ts'

/** Turns what the rooms throw at a start into one kind of error; anything unknown stays what it is. */
export function toAppStartError(error: unknown, { dataDir, listen }: { dataDir: string; listen: string }): unknown {
  if (error instanceof ServerStartError) {
    if (error.isAddressError) return listenError('API', '--listen', listen, error)
    return new AppStartError('DataDirectory', error.message, dataHints[error.code] ?? 'choose another with --data', error)
  }
  if (error instanceof StateStoreError) {
    return new AppStartError(
      'DataDirectory',
      `the state store of ${dataDir}: ${error.message}`,
      dataHints[error.code] ?? 'choose another with --data',
      error,
    )
  }
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC') return new AppStartError('DataDirectory', `the disk of ${dataDir} is full`, dataHints.DiskFull, error)
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS' || code === 'ENOTDIR') {
    return new AppStartError('DataDirectory', `${dataDir} cannot be written (${code})`, dataHints.DataDirectoryUnwritable, error)
  }
  return error
}

const dataHints: Record<string, string> & { DiskFull: string; DataDirectoryUnwritable: string } = {
  DataTooNew: 'use the newer version of oarlock that wrote it, or another directory with --data; nothing was changed',
  DataInUse: 'stop the other process, or choose another directory with --data',
  InUse: 'stop the other process, or choose another directory with --data',
  DiskFull: 'free some space and start again; nothing that was acknowledged is lost',
  DataCorrupt: 'nothing was changed; the message says how to go on',
  DataMissing: 'nothing was changed; the message says how to go on',
  Corrupt: 'restore the directory from a backup, or choose another with --data',
  StateKeyMismatch: 'put the file keys/state.key back that belongs to this data directory',
  DataDirectoryUnwritable: 'check its owner and mode, or choose another with --data',
}

/** An address that cannot be listened on, with the flag that names another. */
export function listenError(what: string, flag: string, address: string, cause: unknown): AppStartError {
  const error = cause as NodeJS.ErrnoException & { cause?: NodeJS.ErrnoException }
  const code = error.cause?.code ?? error.code
  const why = code === 'EADDRINUSE' ? 'is in use by another process' : `cannot be listened on (${code})`
  return new AppStartError(
    'Listen',
    `${address}, the address of the ${what}, ${why}`,
    `${code === 'EADDRINUSE' ? 'stop the other process, or choose' : 'choose'} another with ${flag} HOST:PORT (port 0 picks a free one)`,
    cause,
  )
}
