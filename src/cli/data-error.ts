import { ServerStartError } from '../kubernetes/server/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

/** Turns a {@link ServerStartError} into an error with an exit code; returns other errors unchanged. */
export function dataError(error: unknown): unknown {
  if (!(error instanceof ServerStartError)) return error
  const exitCode = error.isAddressError ? exitCodes.listen : exitCodes.dataDirectory
  return new CliError(error.message, { exitCode, cause: error })
}
