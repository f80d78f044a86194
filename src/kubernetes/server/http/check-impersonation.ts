import { StatusError } from '../../object/index.ts'
import type { HttpRequest } from './handler-types.ts'

/** @throws {StatusError} Forbidden: a request to act as another user must not be carried out as the user who sent it. */
export function checkImpersonation({ headers }: HttpRequest): void {
  if (headers['impersonate-user'] === undefined && headers['impersonate-group'] === undefined && headers['impersonate-uid'] === undefined)
    return
  throw new StatusError('Forbidden', 'impersonation is not supported: use a token of that user (kubectl create token for a ServiceAccount)')
}
