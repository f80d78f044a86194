import { type DeclareCommand, dataOption, outputOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  const backup = program
    .command('backup')
    .description('back up an installation to a file, even while it runs')
    .option('--to <file>', 'backup file to create, readable only by you (required)')
    .addOption(dataOption())
    .option('--kubeconfig <file>', 'back up the server that this kubeconfig points to, instead of --data')
    .option('--context <name>', 'kubeconfig context (default: the current context)')
    .option('--include-logs', 'include the logs of Runs')
    .option('--include-keys', 'include the encryption keys, encrypted with a passphrase; only with --data')
    .option('--passphrase-file <file>', 'file with the passphrase, - for stdin (default: ask)')
    .option('--objects-only', 'leave out the states')
    .option('--force', 'overwrite an existing file')
    .addOption(outputOption(['json', 'yaml']))
    .action(async options => (await import('./backup.ts')).backup(options))

  backup
    .command('verify')
    .description('check that a backup is whole and has all states')
    .argument('<file>', 'a file written by "oarlock backup"')
    .option('--passphrase-file <file>', 'also decrypt the keys with the passphrase in this file, - for stdin')
    .addOption(outputOption(['json', 'yaml']))
    .action(async (file, options) => (await import('./backup-verify.ts')).verify(file, options))
}
