import { type DeclareCommand, dataOption, outputOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  program
    .command('restore')
    .description('restore the database of a data directory of a stopped server')
    .argument('<file>', 'a file written by "oarlock backup"')
    .addOption(dataOption())
    .option('--force', 'replace an existing database, which is kept under another name')
    .option('--salvage', 'skip damaged rows and Secrets without a key, to recover what a damaged oarlock.db still holds')
    .option(
      '--encryption-provider-config <file>',
      'keys/encryption-config.json of the server that the backup is from, unless it is in --data',
    )
    .addOption(outputOption(['json', 'yaml']))
    .action(async (file, options) => (await import('./restore.ts')).restore(file, options))
}
