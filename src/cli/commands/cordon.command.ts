import { accessOptions, type DeclareCommand } from '../options.ts'

export const declare: DeclareCommand = program => {
  accessOptions(program.command('cordon'))
    .description('assign no new Runs to workers; they keep running')
    .argument('[worker...]', 'names of Workers')
    .option('--pool <pool>', 'cordon all current workers of this pool')
    .action(async (names, options) => (await import('./cordon.ts')).cordon(names, options))
}
