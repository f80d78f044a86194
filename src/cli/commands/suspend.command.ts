import type { Command } from 'commander'
import { accessOptions, type DeclareCommand } from '../options.ts'

export const declare: DeclareCommand = program => {
  selectedStacks(program.command('suspend'))
    .description('suspend Stacks: no Run of theirs starts until they are resumed')
    .action(async (names, options) => (await import('./suspend.ts')).setSuspended(true, names, options))
}

export const selectedStacks = (command: Command): Command =>
  accessOptions(command, { allNamespaces: true })
    .argument('[stack...]', 'NAME or stack/NAME')
    .option('--all', 'all Stacks of the namespace, or with -A of all namespaces')
    .option('-l, --selector <selector>', 'the Stacks that match this label selector')
