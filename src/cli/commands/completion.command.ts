import type { DeclareCommand } from '../options.ts'

export const declare: DeclareCommand = program => {
  program
    .command('completion')
    .description('print a completion script for bash, zsh or fish')
    .argument('<shell>', 'bash, zsh or fish')
    .action(async shell => (await import('./completion.ts')).completion(program, shell))
}
