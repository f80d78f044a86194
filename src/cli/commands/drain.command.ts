import { accessOptions, type DeclareCommand, waitOptions } from '../options.ts'

export const declare: DeclareCommand = program => {
  waitOptions(accessOptions(program.command('drain')), true)
    .description('drain workers: they finish their Runs, start none, and exit')
    .argument('[worker...]', 'names of Workers')
    .option('--pool <pool>', 'drain every worker of this pool')
    .action(async (names, options) => (await import('./drain.ts')).drain(names, options))
}
