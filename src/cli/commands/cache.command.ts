import { type Command, InvalidArgumentError, Option } from 'commander'
import { parseQuantity, quantityValue } from '../../kubernetes/object/index.ts'
import { accessOptions, type DeclareCommand, dataOption, duration, outputOption } from '../options.ts'

const notes = `
Packages that workers of this host keep for later Runs: dependencies of programs
and providers. Without --data and --cache-dir the directories are
$OARLOCK_CACHE_DIR, or else those of "oarlock up" and of "oarlock worker".`

const warmNotes = `
A Stack has had a Run before: its trust domain is that of the newest one. The
command reads the Stack, its Runs and the Secrets of its source and its
installs with your rights.

Domains are namespace-NAME or tenant-UID, and process-namespace-NAME or
process-tenant-UID for Runs without a sandbox; "cache list" prints them. Runs
of Stacks that set spec.env may have dependencies of their own: warm the Stack.

OARLOCK_PROVIDER_CACHE_SIZE and OARLOCK_DEPENDENCY_CACHE_SIZE must be those of
the workers (default: 10Gi each): what is beyond them is removed.`

export const declare: DeclareCommand = program => {
  const cache = program.command('cache').description('list, remove or fetch packages that workers of this host cache')
  const load = () => import('./cache.ts')
  directoryOptions(cache.command('list'))
    .description('list cached packages, the most recently used first')
    .action(async options => (await load()).list(options))
  directoryOptions(cache.command('prune'))
    .description('remove cached packages that no Run uses')
    .option('--older-than <duration>', 'remove what was last used longer ago, such as 7d', duration)
    .option('--max-size <size>', 'remove the least recently used until this size, such as 10Gi', size)
    .option('--dry-run', 'print what would be removed')
    .action(async options => (await load()).prune(options))
  accessOptions(cache.command('warm'))
    .argument('<source>', 'stack/NAME, or the root of a source of Stacks, such as a clone')
    .description('fetch what Runs of a Stack or a source need: packages, providers, plugins')
    .option('--domain <name>', 'trust domain of the Runs of a source, such as namespace-team-a')
    .option('--directory <path>', 'directory of the project in the source (default: its root)')
    .addOption(
      new Option('--engine <name>', 'engine of the Runs (default: by the files)').choices(['terraform', 'opentofu', 'pulumi', 'ansible']),
    )
    .option('--allow-path <path...>', 'paths that sources of Stacks may be read from (default: $OARLOCK_ALLOW_PATHS)')
    .option('--engine-environment <pattern...>', "variables that Runs get (the pool's spec.engineEnvironment)")
    .addOption(dataOption())
    .option('--cache-dir <dir>', 'cache directory of workers (default: <data>/cache)')
    .addOption(outputOption(['json', 'yaml']))
    .addHelpText('after', warmNotes)
    .action(async (source, options) => (await load()).warm(source, options))
}

function directoryOptions(command: Command): Command {
  return command
    .addOption(dataOption())
    .option('--cache-dir <dir>', 'cache directory of workers (default: <data>/cache)')
    .option('--domain <name>', 'only packages of this trust domain, as "list" prints it')
    .addOption(outputOption(['json', 'yaml']))
    .addHelpText('after', notes)
}

/** Bytes. */
function size(text: string): number {
  try {
    const bytes = quantityValue(parseQuantity(text))
    if (bytes >= 0) return bytes
  } catch {}
  throw new InvalidArgumentError('A size >= 0 is expected, such as 10Gi or 500Mi.')
}
