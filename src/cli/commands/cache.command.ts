import { type Command, InvalidArgumentError } from 'commander'
import { parseQuantity, quantityValue } from '../../kubernetes/object/index.ts'
import { type DeclareCommand, dataOption, duration, outputOption } from '../options.ts'

const notes = `
Packages that workers of this host keep for later Runs: dependencies of programs
and providers. Without --data and --cache-dir the directories are
$OARLOCK_CACHE_DIR, or else those of "oarlock up" and of "oarlock worker".`

export const declare: DeclareCommand = program => {
  const cache = program.command('cache').description('list or remove packages that workers of this host have cached')
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
