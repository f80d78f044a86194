import type { DeclareCommand } from '../options.ts'
import { selectedStacks } from './suspend.command.ts'

export const declare: DeclareCommand = program => {
  selectedStacks(program.command('resume'))
    .description('resume suspended Stacks: their changes are applied again')
    .action(async (names, options) => (await import('./suspend.ts')).setSuspended(false, names, options))
}
