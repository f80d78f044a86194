import { accessOptions, type DeclareCommand, yesOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  accessOptions(program.command('reject'))
    .description('reject the plan that awaits approval: it is not applied')
    .argument('<stack>', 'NAME or stack/NAME')
    .option('--reason <text>', 'why, for others to read (at most 1,000 characters)')
    .option('--plan <digest>', 'fail unless this plan awaits approval')
    .addOption(yesOption())
    .action(async (target, options) => (await import('./reject.ts')).reject(target, options))
}
