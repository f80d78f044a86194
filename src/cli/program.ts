import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { durationPattern } from '../kubernetes/object/index.ts'
import { formatError } from './cli-error.ts'
import { errPaint, note } from './console.ts'
import { exitCodeHelp, exitCodes } from './exit-codes.ts'
import { beginLeanStart } from './lean-start.ts'
import { outputFormats } from './output/output-formats.ts'
import { packageVersion } from './version.ts'

/** Runs one command line and returns what to exit with. Nothing is thrown. */
export async function run(argv: readonly string[]): Promise<number> {
  let exitCode: number = exitCodes.done
  const program = makeProgram(code => {
    exitCode = code
  })
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    // Commander has printed what is wrong, and help is not an error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
    const { message, details, hint, exitCode } = formatError(error)
    const paint = errPaint()
    note(`${paint('red', 'oarlock:')} ${message}`)
    for (const detail of details) note(`  ${detail}`)
    if (hint) note(`  ${paint('dim', `hint: ${hint}`)}`)
    if (process.env.OARLOCK_DEBUG && error instanceof Error) note(error.stack ?? '')
    return exitCode
  }
}

type ExitWith = (code: number) => void

/** The whole command line. Modules of commands are loaded only when their command runs, so that `oarlock worker` starts fast. */
function makeProgram(exitWith: ExitWith): Command {
  const program = new Command('oarlock')
    .description('A control plane for infrastructure that scales by adding hands.')
    .version(`oarlock ${packageVersion()}`, '--version')
    .showHelpAfterError('(oarlock --help shows what there is)')
    .showSuggestionAfterError()
    .enablePositionalOptions()
    .configureHelp({ showGlobalOptions: false })
    .exitOverride()
    .addHelpText('after', `\nExit codes:\n${exitCodeHelp.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`).join('\n')}`)

  program
    .command('up')
    .description('start everything in this process: API server, controllers, workers')
    .option('--data <dir>', 'data directory (default: OARLOCK_DATA, or .oarlock)')
    .option('--listen <host:port>', 'address of the API, over TLS; port 0 picks a free one', '127.0.0.1:7466')
    .option('--tls-san <name>', 'a further name or address that others reach the API by (repeatable)', collect, [])
    .option('--http <host:port>', 'address of the status page and metrics', '127.0.0.1:7467')
    .option('--allow-path <dir>', 'allow Stacks to use source.path below this directory (repeatable)', collect, [])
    .option('--max-workers <n>', 'how many Runs at once (default: one per core, at least 2)', wholeNumber)
    .option('--max-running <n>', 'never more Runs at once, over all WorkerPools (default: no limit)', wholeNumber)
    .option('--sample', 'apply the sample fleet of examples/stacks')
    .option('--apply <file>', 'apply a file or directory once it is up (repeatable)', collect, [])
    .option('--exit-when-ready', 'exit when every applied Stack is as expected')
    .option('--timeout <duration>', 'with --exit-when-ready: how long to wait', duration, '120s')
    .option('--grace <duration>', 'when stopping: how long Runs may take to finish before they are interrupted', duration, '30s')
    .option('--log <file>', 'where the log goes; - is stderr (default: <data>/oarlock.log)')
    .addOption(new Option('--log-level <level>', 'what is logged').choices(['debug', 'info', 'warn', 'error']).default('info'))
    .action(async options => {
      beginLeanStart()
      exitWith(await (await import('./commands/up.ts')).up(options))
    })

  program
    .command('serve')
    .description("start the API server alone: Kubernetes-compatible, without Oarlock's controllers and workers")
    .option('--data <dir>', 'data directory (default: OARLOCK_DATA, or .oarlock)')
    .option('--listen <host:port>', 'address of the API, over TLS; port 0 picks a free one', '127.0.0.1:7466')
    .option('--grace <duration>', 'when stopping: how long requests under way may take', duration, '5s')
    .option('--log <file>', 'where the log goes; - is stderr (default: <data>/oarlock.log)')
    .addOption(new Option('--log-level <level>', 'what is logged').choices(['debug', 'info', 'warn', 'error']).default('info'))
    .addHelpText('after', serveHelp)
    .action(async options => {
      beginLeanStart()
      exitWith(await (await import('./commands/serve.ts')).serve(options))
    })

  program
    .command('backup')
    .description('copy the database of an API server to a file, also while it runs')
    .requiredOption('--to <file>', 'the file to make; readable for you only, as it holds every Secret')
    .option('--data <dir>', 'data directory of the server (default: OARLOCK_DATA, or .oarlock)')
    .option('--kubeconfig <file>', 'ask the server of this kubeconfig instead, as its administrator')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--force', 'replace a file that is there')
    .addOption(output(['json', 'yaml']))
    .action(async options => (await import('./commands/backup.ts')).backup(options))

  program
    .command('restore')
    .description('make a backup the database of a data directory; the server must not run')
    .argument('<file>', 'a file that "oarlock backup" made')
    .option('--data <dir>', 'data directory (default: OARLOCK_DATA, or .oarlock)')
    .option('--force', 'replace a database that is there; it is kept beside the new one')
    .option('--salvage', 'leave out what is damaged: to save what can be read of a damaged oarlock.db')
    .addOption(output(['json', 'yaml']))
    .action(async (file, options) => (await import('./commands/restore.ts')).restore(file, options))

  program
    .command('worker')
    .description('run Runs of a server; the all-in-one process starts these by itself')
    .option('--name <name>', 'name of the Worker')
    .option('--pool <pool>', 'its WorkerPool (default: OARLOCK_POOL, or default)')
    .option('--server <url>', 'address of the API (default: OARLOCK_SERVER)')
    .option('--token <token>', 'a join token of "oarlock token create"; seen by everybody on this machine, unlike:')
    .option('--token-file <file>', 'a file with the token (default: OARLOCK_TOKEN_FILE, or OARLOCK_TOKEN)')
    .option('--once', 'take one Run, then exit (default: as its pool says)')
    .option('--slots <n>', 'Runs at once (default: as its pool says)', wholeNumber)
    .option(
      '--label <key=value>',
      'a label of the Worker, for spec.placement.workerLabels of Stacks, as far as its join token allows (repeatable)',
      collect,
      [],
    )
    .option('--health <host:port>', 'serve /livez, /readyz and /startupz there (default: OARLOCK_HEALTH, or nowhere)')
    .option('--idle-timeout <duration>', 'exit after so long without a Run (default: never)', duration)
    .action(async options => exitWith(await (await import('./commands/worker.ts')).worker(options)))

  access(program.command('apply'))
    .description('create or change objects (server-side apply)')
    .requiredOption('-f, --filename <file>', 'a file, a directory, or - for stdin (repeatable)', collect)
    .option('--force', 'take over fields that others own')
    .option('--dry-run', 'let the server check everything, and change nothing')
    .addOption(output())
    .action(async options => exitWith(await (await import('./commands/apply.ts')).apply(options)))

  access(program.command('get'), { all: true })
    .description('list objects of any type, such as stacks, runs, workers, secrets; "oarlock" lists all of ours')
    .argument('<type>', 'a type, several with commas, or TYPE/NAME')
    .argument('[name...]')
    .option('-l, --selector <selector>', 'only objects with these labels')
    .addOption(output())
    .action(async (type, names, options) => (await import('./commands/get.ts')).get(type, names, options))

  access(program.command('queue'))
    .description('show which Runs wait, in which order and for what, and what each tenant has and used')
    .option('--pool <pool>', 'only Runs of this WorkerPool')
    .option('--limit <n>', 'how many Runs of each pool, from the front (default: 200)', wholeNumber)
    .addOption(output(['json', 'yaml', 'wide']))
    .action(async options => (await import('./commands/queue.ts')).queue(options))

  program
    .command('simulate')
    .description('say how many workers a fleet needs, what its Runs would wait and what it costs; talks to no server')
    .option('--stacks <n>', 'Stacks of the fleet', wholeNumber, 1_000)
    .option('--interval <duration>', 'drift checks of each Stack; 0s: none', duration, '1h')
    .option('--tenants <n>', 'tenants; the k-th has a k-th of the Stacks of the first', wholeNumber, 1)
    .option('--profile <file>', 'JSON: how long Runs take, how many are changes, what fails, what a worker costs (docs/simulate.md)')
    .option(
      '--workers <from..to>',
      'sizes to look at: the maximum of the pool, about ten of the range, or one number (default: 10..100)',
      sizeRange,
    )
    .option('--slots <n>', 'Runs per worker at once', wholeNumber, 1)
    .addOption(new Option('--lifecycle <lifecycle>', 'of the workers').choices(['OneShot', 'Warm']).default('OneShot'))
    .option('--min <n>', 'workers kept even when nothing is queued (default: 0)', wholeNumber)
    .option('--wait <duration>', 'what to aim at: 99 of 100 changes wait no longer for a worker', duration, '1m')
    .option('--hours <n>', 'how long to look, from midnight', wholeNumber, 24)
    .option('--seed <n>', 'of the random numbers; the same seed gives the same answer', wholeNumber, 1)
    .option('--svg <file>', 'draw a picture, too')
    .addOption(output(['json', 'yaml']))
    .action(async options => (await import('./commands/simulate.ts')).simulate(options))

  access(program.command('describe'))
    .description('show an object with its conditions, Runs and events')
    .argument('<type>', 'a type, or TYPE/NAME')
    .argument('[name]')
    .action(async (type, name, options) => (await import('./commands/describe.ts')).describe(type, name, options))

  access(program.command('logs'))
    .description('print the log of a Run, or of the newest Run of a Stack')
    .argument('<stack|run>', 'NAME, stack/NAME or run/NAME')
    .option('-f, --follow', 'go on until the Run has ended')
    .option('--tail <lines>', 'only the last lines')
    .action(async (target, options) => (await import('./commands/logs.ts')).logs(target, options))

  waiting(access(program.command('plan')), true)
    .description('plan a Stack now, and show the plan; nothing is changed')
    .argument('<stack>')
    .action(async (target, options) => (await import('./commands/run.ts')).requestAndWait('plan', target, options))

  waiting(access(program.command('run')), false)
    .description('apply a Stack now, even if nothing has changed')
    .argument('<stack>')
    .action(async (target, options) => (await import('./commands/run.ts')).requestAndWait('apply', target, options))

  waiting(access(program.command('approve')), false)
    .description('show the plan that waits for approval, and approve exactly that plan')
    .argument('<stack>')
    .option('--plan <digest>', 'approve only if this is the plan that waits')
    .option('-y, --yes', 'do not ask')
    .action(async (target, options) => (await import('./commands/approve.ts')).approve(target, options))

  waiting(access(program.command('cancel')), false)
    .description('interrupt a Run, or the Runs of a Stack that are under way')
    .argument('<stack|run>')
    .action(async (target, options) => (await import('./commands/cancel.ts')).cancel(target, options))

  waiting(access(program.command('drain')), true)
    .description('let workers finish their Runs and end; their pool starts others when it needs them')
    .argument('[worker...]')
    .option('--pool <pool>', 'every worker of this pool')
    .action(async (names, options) => (await import('./commands/drain.ts')).drain(names, options))

  access(program.command('uncordon'))
    .description('let workers that drain, and still have Runs to finish, take new ones again')
    .argument('<worker...>')
    .action(async (names, options) => (await import('./commands/uncordon.ts')).uncordon(names, options))

  waiting(access(program.command('destroy')), true)
    .description('destroy what a Stack made, and the Stack')
    .argument('<stack>')
    .option('-y, --yes', 'do not ask')
    .action(async (target, options) => (await import('./commands/destroy.ts')).destroy(target, options))

  waiting(access(program.command('delete')), true)
    .description('delete objects; of a Stack, what spec.deletion says happens to what it made')
    .argument('[type]', 'a type, or TYPE/NAME')
    .argument('[name...]')
    .option('-f, --filename <file>', 'delete the objects of a file, a directory, or - for stdin (repeatable)', collect)
    .option('--ignore-not-found', 'what is gone already is no error')
    .action(async (type, names, options) =>
      exitWith(await (await import('./commands/delete.ts')).remove(type ? [type, ...names] : [], options)),
    )

  addState(program)

  access(program.command('hollow'))
    .description('try how much a server holds: many workers in this process that register, renew and report, and do nothing')
    .requiredOption('--workers <n>', 'how many workers', wholeNumber)
    .option('--runs-per-second <n>', 'make Stacks, and change them so often (default: none)', positiveNumber)
    .option('--stacks <n>', 'how many Stacks take turns in being changed (default: ten for each run per second)', wholeNumber)
    .option('--profile <file>', 'how long Runs take and how many fail, as JSON (default: no time, none)')
    .option('--pool <pool>', 'a WorkerPool of mode External; made, and deleted at the end, if there is none', 'hollow')
    .option('--renew <duration>', 'how often each worker renews its Lease, which lasts five times as long', duration, '2s')
    .option('--duration <duration>', 'end so long after all workers have registered (default: with Ctrl-C)', duration)
    .option('--connections <n>', 'connections to the server; 2 are cheapest with the embedded one', wholeNumber, 16)
    .option('--server <url>', 'address of the API, instead of a kubeconfig; with --token-file, and OARLOCK_CA_FILE')
    .option('--token-file <file>', 'with --server: a file with the token')
    .option('--keep', 'leave the Stacks and the WorkerPool at the end')
    .addOption(output(['json']))
    .action(async options => exitWith(await (await import('./commands/hollow.ts')).hollow(options)))

  const token = program.command('token').description('tokens with which workers of other machines join a pool')
  access(token.command('create'))
    .description('make a join token; it is printed once and kept nowhere')
    .option('--pool <pool>', 'the WorkerPool whose workers may join with it', 'default')
    .option('--ttl <duration>', 'how long it is good for', duration, '24h')
    .option('--uses <n>', 'how often it may be used (default: as often as wanted)', wholeNumber)
    .option('--label <key=value>', 'a label that every worker of it has (repeatable)', collect, [])
    .option('--allow-label <key[=value]>', 'a label that a worker may choose, * for any (repeatable; default: none)', collect, [])
    .action(async options => (await import('./commands/token.ts')).create(options))
  access(token.command('list'))
    .description('show the join tokens and how many workers joined with each')
    .addOption(output(['json', 'yaml']))
    .action(async options => (await import('./commands/token.ts')).list(options))
  access(token.command('revoke'))
    .description('make join tokens worthless, and with them the credentials of the workers that joined with them, at once')
    .argument('[id...]')
    .option('--worker <name>', 'only the credential of this worker (repeatable)', collect)
    .option('--keep-workers', 'let the workers stay that joined already')
    .action(async (ids, options) => (await import('./commands/token.ts')).revoke(ids, options))

  access(program.command('doctor'))
    .description('say which engines and tools are found, and how to get the missing ones')
    .option('--data <dir>', 'data directory to check')
    .addOption(output(['json', 'yaml']))
    .action(async options => exitWith(await (await import('./commands/doctor.ts')).doctor(options)))

  program
    .command('version')
    .description('print the version')
    .addOption(output(['json', 'yaml']))
    .action(async options => (await import('./commands/version.ts')).version(options))

  program
    .command('completion')
    .description('print a completion script for bash, zsh or fish')
    .argument('<shell>')
    .action(async shell => (await import('./commands/completion.ts')).completion(program, shell))

  return program
}

/** `oarlock state …`: what is kept of the states of Stacks. */
function addState(program: Command): void {
  const state = program
    .command('state')
    .description('look at, lock, roll back and recover the state of Stacks; "oarlock state --help" lists how')
    .showHelpAfterError('(oarlock state --help shows what there is)')
  const command = (name: string, description: string) => access(state.command(name)).description(description).argument('<stack>')
  const yes = ['-y, --yes', 'do not ask'] as const
  const load = () => import('./commands/state.ts')

  access(state.command('list'), { all: true })
    .description('list Stacks with their newest state version, orphaned versions and lock')
    .addOption(output(['json', 'yaml']))
    .action(async options => (await load()).list(options))
  command('show', 'show resources and outputs; secret values are masked')
    .option('--version <n>', 'an older version')
    .addOption(output(['json', 'yaml']))
    .action(async (target, options) => (await load()).show(target, options))
  command('versions', 'list what is kept, and what was refused and kept aside')
    .addOption(output(['json', 'yaml']))
    .action(async (target, options) => (await load()).versions(target, options))
  command('rollback', 'make an older version the current one')
    .requiredOption('--to <n>', 'the version')
    .option(...yes)
    .action(async (target, options) => (await load()).rollback(target, options))
  command('recover', 'make what a Run wrote too late, or under a lost lock, the current state')
    .option('--version <n>', 'the orphaned version (default: the one of the newest Run)')
    .option(...yes)
    .action(async (target, options) => (await load()).recover(target, options))
  command('lock', 'hold Runs off; prints the id of the lock')
    .option('--reason <text>', 'shown to who has to wait')
    .action(async (target, options) => (await load()).lock(target, options))
  command('unlock', 'release the lock of a person, or of a Run that has ended')
    .option('--id <id>', 'release it only if it has this id; nothing is asked then')
    .option(...yes)
    .action(async (target, options) => (await load()).unlock(target, options))
  command('pull', 'print the state as it is, secrets included')
    .option('--version <n>', 'an older version')
    .option('--orphan', 'with --version: one that was refused and kept aside')
    .option('--to <file>', 'write it to a new file that only you can read')
    .action(async (target, options) => (await load()).pull(target, options))
  command('push', 'make a file the current state')
    .argument('<file>', 'a state as JSON, or - for stdin')
    .option('--force', 'also with another lineage or an older serial')
    .option(...yes)
    .action(async (target, file, options) => (await load()).push(target, file, options))
}

const serveHelp = `
The kubeconfig of its administrator is <data>/kubeconfig. It is up when it says so; /readyz answers "ok" without credentials.
SIGTERM and Ctrl-C stop it in good order: watches end, requests under way are answered.`

/** The options of commands that talk to an API server. */
function access(command: Command, { all = false } = {}): Command {
  command
    .option('-n, --namespace <namespace>', 'namespace (default: that of the kubeconfig)')
    .option('--kubeconfig <file>', 'kubeconfig (default: KUBECONFIG, <data>/kubeconfig, ~/.kube/config)')
    .option('--context <name>', 'context of the kubeconfig')
  return all ? command.option('-A, --all-namespaces', 'all namespaces') : command
}

/** `--wait` or `--no-wait`, whichever is not the default, and `--timeout`. */
function waiting(command: Command, byDefault: boolean): Command {
  const option = byDefault ? new Option('--no-wait', 'do not wait for the end') : new Option('--wait', 'wait for the end').default(false)
  return command.addOption(option).option('--timeout <duration>', 'how long to wait', duration, '1h')
}

const output = (formats: readonly string[] = outputFormats) => new Option('-o, --output <format>', 'how to print').choices([...formats])

const collect = (value: string, previous: string[] = []) => [...previous, value]

function duration(text: string): string {
  if (!new RegExp(durationPattern).test(text)) throw new InvalidArgumentError('write it as 90s, 5m or 1h30m.')
  return text
}

function positiveNumber(text: string): number {
  const value = Number(text)
  if (!(value > 0 && value < Infinity)) throw new InvalidArgumentError('it must be a number above 0.')
  return value
}

/** `20..200` or `50`. */
function sizeRange(text: string): { from: number; to: number } {
  const [, from = '', to = from] = /^(\d+)(?:\.\.(\d+))?$/.exec(text) ?? []
  const range = { from: Number(from), to: Number(to) }
  const isRange = from !== '' && range.from >= 1 && range.to >= range.from
  if (!isRange) throw new InvalidArgumentError('write it as 20..200, the smaller number first, or as one number of at least 1.')
  return range
}

function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('it must be a whole number of at least 1.')
  return value
}
