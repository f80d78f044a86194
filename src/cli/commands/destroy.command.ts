import { accessOptions, type DeclareCommand, waitOptions, yesOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  waitOptions(accessOptions(program.command('destroy')), true)
    .description('destroy the resources of a Stack, then delete the Stack')
    .argument('<stack>', 'NAME or stack/NAME')
    .addOption(yesOption())
    .action(async (target, options) => (await import('./destroy.ts')).destroy(target, options))
}
