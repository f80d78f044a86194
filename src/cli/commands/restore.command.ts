import { accessOptions, type DeclareCommand, dataOption, outputOption, yesOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  const restore = program
    .command('restore')
    .description('restore a backup to the data directory of a stopped server')
    .argument('<file>', 'a file written by "oarlock backup"')
    .addOption(dataOption())
    .option('--force', 'replace existing data, which is kept under another name')
    .option('--salvage', 'skip damaged rows, and Secrets and states without a key')
    .option('--keys <dir>', 'keys/ of the data directory that the backup is from, unless it is in --data')
    .option('--passphrase-file <file>', 'file with the passphrase of the keys in the backup, - for stdin (default: ask)')
    .option('--encryption-provider-config <file>', 'encryption-config.json of --keys alone')
    .addOption(outputOption(['json', 'yaml']))
    .action(async (file, options) => (await import('./restore.ts')).restore(file, options))

  accessOptions(restore.command('accept'), { allNamespaces: true })
    .description('continue with Stacks from a backup, after their plans were reviewed')
    .argument('[stacks...]', 'NAME or stack/NAME; none with --all or -A')
    .option('--all', 'all Stacks of the namespace that wait for it')
    .option('--force', 'also Stacks that were not planned since the restore')
    .addOption(yesOption())
    .action(async (targets, options) => (await import('./restore-accept.ts')).accept(targets, options))
}
