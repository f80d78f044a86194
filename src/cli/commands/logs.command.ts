import { accessOptions, type DeclareCommand, nonNegativeInteger } from '../options.ts'

export const declare: DeclareCommand = program => {
  accessOptions(program.command('logs'))
    .description('print the log of a Run, or of the latest Run of a Stack')
    .argument('<stack|run>', 'NAME, stack/NAME or run/NAME')
    .option('-f, --follow', 'stream the log until the Run has ended')
    .option('--tail <lines>', 'print only the last lines (default: all)', nonNegativeInteger)
    .action(async (target, options) => (await import('./logs.ts')).logs(target, options))
}
