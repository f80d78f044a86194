import { Command, CommanderError, type Option } from 'commander'
import { formatError } from './cli-error.ts'
import { exitCodeHelp, exitCodes } from './exit-codes.ts'
import type { ExitWith } from './options.ts'
import { errPaint, note } from './terminal.ts'
import { packageVersion } from './version.ts'

/** Every command, in the order of `oarlock --help`. A module declares its command; the implementation is loaded when the command runs. */
const commands = {
  up: () => import('./commands/up.command.ts'),
  serve: () => import('./commands/serve.command.ts'),
  gateway: () => import('./commands/gateway.command.ts'),
  partition: () => import('./commands/partition.command.ts'),
  stores: () => import('./commands/stores.command.ts'),
  'console-server': () => import('./commands/console-server.command.ts'),
  controller: () => import('./commands/controller.command.ts'),
  pool: () => import('./commands/pool.command.ts'),
  manifests: () => import('./commands/manifests.command.ts'),
  crds: () => import('./commands/crds.command.ts'),
  quiesce: () => import('./commands/quiesce.command.ts'),
  'join-service': () => import('./commands/join-service.command.ts'),
  backup: () => import('./commands/backup.command.ts'),
  restore: () => import('./commands/restore.command.ts'),
  encryption: () => import('./commands/encryption.command.ts'),
  'node-config': () => import('./commands/node-config.command.ts'),
  worker: () => import('./commands/worker.command.ts'),
  apply: () => import('./commands/apply.command.ts'),
  get: () => import('./commands/get.command.ts'),
  queue: () => import('./commands/queue.command.ts'),
  shards: () => import('./commands/shards.command.ts'),
  simulate: () => import('./commands/simulate.command.ts'),
  describe: () => import('./commands/describe.command.ts'),
  logs: () => import('./commands/logs.command.ts'),
  plan: () => import('./commands/plan.command.ts'),
  run: () => import('./commands/run.command.ts'),
  approve: () => import('./commands/approve.command.ts'),
  reject: () => import('./commands/reject.command.ts'),
  cancel: () => import('./commands/cancel.command.ts'),
  suspend: () => import('./commands/suspend.command.ts'),
  resume: () => import('./commands/resume.command.ts'),
  cordon: () => import('./commands/cordon.command.ts'),
  drain: () => import('./commands/drain.command.ts'),
  uncordon: () => import('./commands/uncordon.command.ts'),
  destroy: () => import('./commands/destroy.command.ts'),
  delete: () => import('./commands/delete.command.ts'),
  state: () => import('./commands/state.command.ts'),
  hollow: () => import('./commands/hollow.command.ts'),
  token: () => import('./commands/token.command.ts'),
  cache: () => import('./commands/cache.command.ts'),
  console: () => import('./commands/console.command.ts'),
  doctor: () => import('./commands/doctor.command.ts'),
  version: () => import('./commands/version.command.ts'),
  completion: () => import('./commands/completion.command.ts'),
}

/** Runs one command line and returns the exit code. Never throws. */
export async function run(argv: readonly string[]): Promise<number> {
  let exitCode: number = exitCodes.done
  try {
    const program = await makeProgram(argv[0], code => {
      exitCode = code
    })
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    // Commander has printed the message, and help is not an error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
    return reportError(error)
  }
}

/** Prints an error on stderr and returns the exit code. */
function reportError(error: unknown): number {
  const { message, details, hint, exitCode } = formatError(error)
  const paint = errPaint()
  note(`${paint('red', 'oarlock:')} ${message}`)
  for (const detail of details) note(`  ${detail}`)
  if (hint) note(`  ${paint('dim', `hint: ${hint}`)}`)
  if (process.env.OARLOCK_DEBUG && error instanceof Error) note(error.stack ?? '')
  return exitCode
}

/** The program with the command called `name`; with every command for help, for a completion script, and for an unknown name. */
export async function makeProgram(name: string | undefined, exitWith: ExitWith): Promise<Command> {
  const program = new Command('oarlock')
    .description('A control plane for infrastructure as code, with a fleet of workers.')
    .version(`oarlock ${packageVersion()}`, '--version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show help for a command')
    .showSuggestionAfterError()
    .enablePositionalOptions()
    // The same style as every other error.
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, `${errPaint()('red', 'oarlock:')} `)) })
    .configureHelp({ showGlobalOptions: false, optionDescription, subcommandTerm: command => command.name() })
    .exitOverride()
    .addHelpText('after', `\nExit codes:\n${exitCodeHelp.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`).join('\n')}`)
  const isOne = name !== undefined && name !== 'completion' && Object.hasOwn(commands, name)
  const load = isOne ? [commands[name as keyof typeof commands]] : Object.values(commands)
  for (const { declare } of await Promise.all(load.map(each => each()))) declare(program, exitWith)
  addHelpHint(program, 'oarlock')
  return program
}

/** After an error, each command refers to its own help. */
function addHelpHint(command: Command, path: string): void {
  const content = command.commands.length > 0 ? 'lists the commands' : 'describes the arguments and options'
  command.showHelpAfterError(`  ${errPaint()('dim', `hint: "${path} --help" ${content}`)}`)
  for (const child of command.commands) addHelpHint(child, `${path} ${child.name()}`)
}

/** As commander has it, without quotes around a default, and without a default that is empty. */
function optionDescription({ description, argChoices, defaultValue, mandatory }: Option): string {
  const hasDefault = defaultValue !== undefined && defaultValue !== false && !(Array.isArray(defaultValue) && defaultValue.length === 0)
  const notes = [
    ...(mandatory ? ['required'] : []),
    ...(argChoices ? [argChoices.join(', ')] : []),
    ...(hasDefault && defaultValue !== true ? [`default: ${defaultValue}`] : []),
  ]
  return notes.length > 0 ? `${description} (${notes.join('; ')})` : description
}
