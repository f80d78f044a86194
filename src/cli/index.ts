/**
 * @module cli: the `oarlock` command. Start reading at `program.ts`; each command is one file in `commands/`, loaded when it is used.
 * In: arguments, environment, a kubeconfig. Out: tables, JSON, YAML or names on stdout, one clear form of error on stderr, an exit code.
 * Not done here: any decision about Stacks and Runs. A command reads objects, writes objects, and waits for what controllers make of them.
 */
export { CliError } from './cli-error.ts'
export { exitCodes } from './exit-codes.ts'
export { run } from './program.ts'
