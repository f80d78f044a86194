import { accessOptions, type DeclareCommand, waitOptions, yesOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  waitOptions(accessOptions(program.command('approve')), false)
    .description('show the plan that awaits approval, and approve that plan')
    .argument('<stack>', 'NAME or stack/NAME')
    .option('--plan <digest>', 'fail unless this plan awaits approval')
    .addOption(yesOption())
    .action(async (target, options) => (await import('./approve.ts')).approve(target, options))
}
