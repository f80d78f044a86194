import { StatusError } from '../../kubernetes/object/index.ts'
import { storeErrorMessage } from '../../stores/state/index.ts'
import type { ErrorBody } from '../protocol/index.ts'

export const isForbidden = (error: unknown) => error instanceof StatusError && error.code === 403
export const isNotFound = (error: unknown) => error instanceof StatusError && error.code === 404

/** What the page is sent of an error. Errors other than those of the API server and the stores are for the log only. */
export function errorBody(error: unknown): ErrorBody | undefined {
  if (error instanceof StatusError) return { code: error.code, reason: error.reason, message: storeErrorMessage(error) ?? error.message }
  if ((error as Error)?.name === 'LimitExceededError') return { code: 429, reason: 'TooManyRequests', message: (error as Error).message }
  if ((error as Error)?.name === 'ConnectionError') return { code: 503, reason: 'ServiceUnavailable', message: (error as Error).message }
  return undefined
}
