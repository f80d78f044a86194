import { AppStartError } from '../app/index.ts'
import { ServerStartError } from '../kubernetes/server/index.ts'
import { UnusableDirectoryError } from '../kubernetes/util/index.ts'
import { StateStoreError } from '../stores/state/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { startError } from './start-error.ts'

/** Turns an error of a data directory, a {@link ServerStartError} for example, into an error with an exit code; returns other errors unchanged. */
export function dataError(error: unknown): unknown {
  if (error instanceof StateStoreError) return new CliError(error.message, { exitCode: exitCodes.dataDirectory, cause: error })
  if (error instanceof UnusableDirectoryError)
    return new CliError(error.message, { exitCode: exitCodes.dataDirectory, hint: error.hint, cause: error })
  if (error instanceof AppStartError) return startError(error, '')
  if (!(error instanceof ServerStartError)) return error
  const exitCode = error.isAddressError ? exitCodes.listen : exitCodes.dataDirectory
  return new CliError(error.message, { exitCode, cause: error })
}
