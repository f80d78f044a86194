import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { HttpError, send, sendJson } from '../http/index.ts'
import { describeHolder, type LockHolder } from './lock-holder.ts'
import { StateStoreError, type StateStoreErrorCode } from './state-store-error.ts'
import type { LockResult, StateWriteResult, StoredVersion } from './state-types.ts'

/** Responds with the content of a version, or 204 when there is none. */
export function sendVersion(res: ServerResponse, version: StoredVersion | undefined): void {
  if (version === undefined || version.size === 0) {
    send(res, 204, '', '', version && { 'oarlock-version': version.version })
    return
  }
  const { bytes, version: number, epoch } = version
  const md5 = createHash('md5').update(bytes).digest('base64')
  send(res, 200, 'application/json', bytes, { 'content-md5': md5, 'oarlock-version': number, 'oarlock-epoch': epoch })
}

/** Responds with the number of the stored version. @throws {HttpError} 409 if the write was rejected. */
export function sendWriteResult(res: ServerResponse, result: StateWriteResult): void {
  if (result.kind === 'rejected') throw writeRejected(result)
  sendJson(res, 200, { version: result.version })
}

/** Responds to a request to keep content as an orphan; content that is current already is not stored again. */
export function sendKept(res: ServerResponse, result: StateWriteResult): void {
  sendJson(res, 200, result.kind === 'rejected' ? { orphan: result.orphan } : { version: result.version })
}

function writeRejected(result: Extract<StateWriteResult, { kind: 'rejected' }>): HttpError {
  const { reason, orphan, currentEpoch, holder } = result
  if (reason === 'Incomplete') {
    return new HttpError(409, reason, `incomplete state is never current; it is stored as orphaned version ${orphan}`, { orphan })
  }
  if (reason === 'JournalClosed') {
    return new HttpError(409, reason, `the update is complete; the entries are stored as orphaned version ${orphan}`, { orphan })
  }
  if (reason === 'RunEnded') {
    return new HttpError(409, reason, `the Run has ended; the content is stored as orphaned version ${orphan}`, { orphan })
  }
  const cause =
    reason === 'StaleEpoch'
      ? `epoch ${currentEpoch} has started`
      : holder
        ? `the lock is held by ${describeHolder(holder)}`
        : 'the lock is not held'
  const message = `the write was rejected because ${cause}; the content is stored as orphaned version ${orphan}`
  return new HttpError(409, reason, message, { orphan, currentEpoch, holder })
}

export function lockRejected(result: Extract<LockResult, { kind: 'rejected' }>): HttpError {
  if (result.reason === 'StaleEpoch') {
    const { currentEpoch } = result
    return new HttpError(409, 'StaleEpoch', `the request was rejected because epoch ${currentEpoch} has started`, { currentEpoch })
  }
  const { holder, sinceMs } = result
  return new HttpError(423, 'Locked', `the lock is held by ${describeHolder(holder)}`, { holder, sinceMs })
}

export function notLockHolder(holder: LockHolder): HttpError {
  const hint = holder.kind === 'Run' ? '; cancel the run instead' : ''
  return new HttpError(409, 'NotLockHolder', `the lock is held by ${describeHolder(holder)}${hint}`, { holder })
}

export function accessDenied({ code, message }: { code: 401 | 403 | 404 | 503; message: string }, isBackend: boolean): HttpError {
  // Terraform interprets 404 as "no state yet" and would plan to create everything again: a missing stack must be an error.
  if (code === 404 && isBackend) return new HttpError(403, 'NotFound', message)
  return new HttpError(code, { 401: 'Unauthorized', 403: 'Forbidden', 404: 'NotFound', 503: 'Unavailable' }[code], message)
}

const storeErrorStatus: Record<StateStoreErrorCode, number> = {
  ...{
    PlanExists: 409,
    TooLarge: 413,
    DiskFull: 507,
    QuotaExceeded: 507,
    Overloaded: 503,
    Unavailable: 503,
    InUse: 503,
    InvalidArgument: 400,
    JournalConflict: 409,
    JournalUnreadable: 409,
    DecryptionFailed: 400,
  },
  ...{ StateKeyMismatch: 500, DataTooNew: 500, Corrupt: 500 },
}

/** Errors that are not known become `InternalError` without their message. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error
  if (error instanceof StateStoreError) return new HttpError(storeErrorStatus[error.code], error.code, error.message)
  return new HttpError(500, 'InternalError', 'the server failed to handle the request')
}
