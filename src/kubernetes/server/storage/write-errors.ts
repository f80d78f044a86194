import { StatusError } from '../../object/index.ts'
import { sqliteFull } from './sqlite-codes.ts'

/** The store failed for good. */
export function restartError(reason: string): StatusError {
  return new StatusError('InternalError', `${reason}: restart the server`)
}

/** A commit failed: nothing of it is stored. `errcode` is SQLite's, 0 for other errors. */
export function commitError(errcode: number, message: string): StatusError {
  const isFull = (errcode & 0xff) === sqliteFull || /no space left|disk is full/i.test(message)
  if (!isFull) return new StatusError('InternalError', `the write could not be stored (${message}): read the object before you retry`)
  const text = 'the disk of the data directory is full: nothing was written; free some space and retry'
  return new StatusError('InsufficientStorage', text, { code: 507 })
}

export function shuttingDownError(): StatusError {
  return new StatusError('ServiceUnavailable', 'the server is shutting down: nothing was written')
}

export function tooManyQueuedBytesError(): StatusError {
  return new StatusError('TooManyRequests', 'the disk does not keep up with the writes: nothing was written, retry later', {
    details: { retryAfterSeconds: 1 },
  })
}
