import { accessOptions, type DeclareCommand } from '../options.ts'

export const declare: DeclareCommand = program => {
  accessOptions(program.command('uncordon'))
    .description('let cordoned or draining workers accept Runs again')
    .argument('<worker...>', 'names of Workers')
    .action(async (names, options) => (await import('./uncordon.ts')).uncordon(names, options))
}
