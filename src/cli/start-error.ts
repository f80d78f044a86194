import { AppStartError, type AppStartErrorKind } from '../app/index.ts'
import { CliError, usageError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

const exitCodeOf: Record<AppStartErrorKind, number> = {
  Listen: exitCodes.listen,
  DataDirectory: exitCodes.dataDirectory,
  Crds: exitCodes.rejected,
  Shards: exitCodes.rejected,
  Configuration: exitCodes.usage,
  Partition: exitCodes.rejected,
}

/** Turns an error of the start of a process into an error with an exit code; returns unknown errors unchanged. */
export function startError(error: unknown, command: string): unknown {
  if (error instanceof RangeError && error.message.startsWith('address ')) return usageError(error.message, `oarlock ${command} --help`)
  if (!(error instanceof AppStartError)) return error
  return new CliError(error.message, { exitCode: exitCodeOf[error.kind], hint: error.hint, cause: error })
}
