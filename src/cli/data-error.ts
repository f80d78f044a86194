import { ServerStartError } from '../kubernetes/server/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

/** Tells a {@link ServerStartError} as the command line does; other errors stay what they are. */
export function dataError(error: unknown): unknown {
  if (!(error instanceof ServerStartError)) return error
  const exitCode = error.isAddressError ? exitCodes.listen : exitCodes.dataDirectory
  return new CliError(error.message, { exitCode, cause: error })
}
