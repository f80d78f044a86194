import { accessOptions, type DeclareCommand, waitOptions } from '../options.ts'

export const declare: DeclareCommand = program => {
  waitOptions(accessOptions(program.command('cancel')), false)
    .description('cancel a Run, or all active Runs of a Stack')
    .argument('<stack|run>', 'NAME, stack/NAME or run/NAME')
    .action(async (target, options) => (await import('./cancel.ts')).cancel(target, options))
}
