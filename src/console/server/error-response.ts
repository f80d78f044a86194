import { StatusError } from '../../kubernetes/object/index.ts'
import { storeErrorMessage } from '../../stores/state/index.ts'
import type { ErrorBody } from '../protocol/index.ts'

export const isForbidden = (error: unknown) => error instanceof StatusError && error.code === 403
export const isNotFound = (error: unknown) => error instanceof StatusError && error.code === 404

/** Of an error that is none of a request: it is in the log. */
export const failedMessage = 'the console failed: see its log'
export const failedBody: ErrorBody = { code: 500, reason: 'InternalError', message: failedMessage }

/** What the page is sent of an error. Errors other than those of the API server and the stores are for the log only. */
export function errorBody(error: unknown): ErrorBody | undefined {
  if (error instanceof StatusError) return { code: error.code, reason: error.reason, message: storeErrorMessage(error) ?? error.message }
  const { name, message } = error as Error
  if (name === 'InvalidNameError' || name === 'FilterError') return { code: 400, reason: 'BadRequest', message }
  if (name === 'LimitExceededError') return { code: 429, reason: 'TooManyRequests', message }
  if (name === 'ConnectionError') return { code: 503, reason: 'ServiceUnavailable', message }
  return undefined
}
