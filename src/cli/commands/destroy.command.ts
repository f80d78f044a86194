import { accessOptions, type DeclareCommand, waitOptions, yesOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  waitOptions(accessOptions(program.command('destroy')), true)
    .description('show what would be destroyed, destroy it, and delete the Stack')
    .argument('[stack]', 'NAME or stack/NAME')
    .option('--all', 'all Stacks of the namespace that -n names')
    .option('--use-current-source', 'use the present source, not the one applied last')
    .addOption(yesOption())
    .action(async (target, options) => (await import('./destroy.ts')).destroy(target, options))
}
