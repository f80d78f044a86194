import { accessOptions, type DeclareCommand, waitOptions } from '../options.ts'

export const declare: DeclareCommand = program => {
  waitOptions(accessOptions(program.command('plan')), true)
    .description('plan a Stack now and print the plan, without changing anything')
    .argument('<stack>', 'NAME or stack/NAME')
    .action(async (target, options) => (await import('./run.ts')).requestAndWait('plan', target, options))
}
