/**
 * @module cli: the `oarlock` command. Start reading at `program.ts`. Each command has two files in `commands/`: `<name>.command.ts`
 * declares its arguments and help, and `<name>.ts`, loaded when the command runs, implements it.
 * `destroy/` plans and executes a destruction, `fleet/` reports the progress of many Stacks, `state/` speaks to the state store, and `output/` formats.
 * In: arguments, environment, a kubeconfig. Out: tables, JSON, YAML or names on stdout, errors on stderr, an exit code.
 * Out of scope: any decision about Stacks and Runs. A command reads and writes objects, and waits for what controllers do.
 */
export { CliError } from './cli-error.ts'
export { exitCodes } from './exit-codes.ts'
export { run } from './program.ts'
