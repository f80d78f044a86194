import { type DeclareCommand, outputOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  program
    .command('version')
    .description('print the version')
    .addOption(outputOption(['json', 'yaml']))
    .action(async options => (await import('./version.ts')).version(options))
}
