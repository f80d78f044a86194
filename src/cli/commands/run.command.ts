import { accessOptions, type DeclareCommand, waitOptions } from '../options.ts'

export const declare: DeclareCommand = program => {
  waitOptions(accessOptions(program.command('run')), false)
    .description('apply a Stack now, even if nothing has changed')
    .argument('<stack>', 'NAME or stack/NAME')
    .action(async (target, options) => (await import('./run.ts')).run(target, options))
}
