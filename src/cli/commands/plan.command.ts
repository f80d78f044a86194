import { accessOptions, type DeclareCommand, outputOption, waitOptions } from '../options.ts'
import { runOptions } from '../run-options.ts'

export const declare: DeclareCommand = program => {
  runOptions(waitOptions(accessOptions(program.command('plan')), true))
    .description('plan a Stack now and show the plan in full; change nothing')
    .argument('[stack]', 'NAME or stack/NAME')
    .option('--run <run>', 'show the stored plan of this Run instead')
    .addOption(outputOption(['text', 'json']))
    .action(async (target, options) => (await import('./plan.ts')).plan(target, options))
}
