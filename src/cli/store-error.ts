import { StatusError } from '../kubernetes/object/index.ts'
import { storeErrorMessage } from '../stores/state/index.ts'
import { CliError, exitCodeOf, forbiddenHint } from './cli-error.ts'

/** The error for the user when a store rejected a request for `what`; other errors are returned unchanged. Without a permission the hint names the role that grants it. */
export function storeError(error: unknown, what: string): unknown {
  const message = error instanceof StatusError ? storeErrorMessage(error) : undefined
  if (!(error instanceof StatusError) || message === undefined) return error
  const hint = error.code === 403 ? forbiddenHint(message) : undefined
  return new CliError(`${what}: ${message}`, { exitCode: exitCodeOf(error), cause: error, ...(hint && { hint }) })
}
