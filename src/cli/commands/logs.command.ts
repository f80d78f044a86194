import { accessOptions, type DeclareCommand, duration, nonNegativeInteger, timestamp } from '../options.ts'

export const declare: DeclareCommand = program => {
  accessOptions(program.command('logs'))
    .description('print the log of a Run, or of the latest Run of a Stack')
    .argument('<stack|run>', 'NAME, stack/NAME or run/NAME')
    .option('-f, --follow', 'stream the log until the Run has ended')
    .option('--tail <lines>', 'print only the last lines (default: all)', nonNegativeInteger)
    .option('--timestamps', 'print before each line when it was stored (UTC)')
    .option('--since <duration>', 'print only lines of this time, such as 10m', duration)
    .option('--since-time <time>', 'print only lines since this time, as RFC 3339', timestamp)
    .option('-p, --previous', 'of a Stack: the log of the Run before the latest')
    .action(async (target, options) => (await import('./logs.ts')).logs(target, options))
}
