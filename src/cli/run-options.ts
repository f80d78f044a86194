import { type Command, InvalidArgumentError } from 'commander'
import { engineOptionsProblem, type RequestType, type RunOptions, runOptionsProblem, type Stack } from '../api/index.ts'
import { CliError, usageError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

/** What `oarlock run` and `oarlock plan` pass to `terraform plan` or `pulumi preview`. */
export type RunFlags = { target?: string[]; replace?: string[]; refresh: boolean; refreshOnly?: boolean }

/** A Run to request. */
export type RequestedRun = { readonly type: RequestType; readonly options?: RunOptions | undefined }

/** `--target`, `--replace`, `--no-refresh`, and `--refresh-only` where something is applied. */
export function runOptions(command: Command, { refreshOnly = false } = {}): Command {
  command
    .option(
      '--target <address>',
      'only this resource or module and what it needs; with engine pulumi a URN (repeatable)',
      address('targets'),
    )
    .option('--replace <address>', 'replace this resource even if unchanged (repeatable)', address('replace'))
    .option('--no-refresh', 'compare with the stored state; do not read the resources')
  return refreshOnly ? command.option('--refresh-only', 'change only the state, not the resources') : command
}

const address =
  (field: 'targets' | 'replace') =>
  (value: string, previous: string[] = []) => {
    const problem = runOptionsProblem({ [field]: [value] })
    if (problem !== undefined) throw new InvalidArgumentError(`${problem}.`)
    return [...previous, value]
  }

/** The Run that the flags describe. @throws {CliError} usage, or rejected if the engine of the Stack cannot plan so. */
export function requestedRun(stack: Stack, type: 'plan' | 'apply', flags: RunFlags): RequestedRun {
  const { target, replace, refresh, refreshOnly } = flags
  if (refreshOnly && (replace || !refresh))
    throw usageError('--refresh-only cannot be combined with --replace or --no-refresh', 'omit --refresh-only')
  const options: RunOptions = { ...(target && { targets: target }), ...(replace && { replace }), ...(!refresh && { refresh }) }
  const hasOptions = Object.keys(options).length > 0
  const problem = runOptionsProblem(options) ?? (hasOptions || refreshOnly ? engineOptionsProblem(stack.spec.engine, options) : undefined)
  if (problem !== undefined)
    throw new CliError(`stack/${stack.metadata.name}: ${problem}`, { exitCode: exitCodes.rejected, hint: 'no Run was requested' })
  return { type: refreshOnly ? 'refresh' : type, ...(hasOptions && { options }) }
}
