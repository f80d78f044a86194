import { accessOptions, type DeclareCommand, waitOptions } from '../options.ts'
import { runOptions } from '../run-options.ts'

export const declare: DeclareCommand = program => {
  runOptions(waitOptions(accessOptions(program.command('run')), false), { refreshOnly: true })
    .description('apply a Stack now, even if nothing has changed')
    .argument('<stack>', 'NAME or stack/NAME')
    .action(async (target, options) => (await import('./run.ts')).run(target, options))
}
