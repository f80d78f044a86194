import { type DeclareCommand, dataOption, outputOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  program
    .command('backup')
    .description('copy the database of an API server to a file, also while it runs')
    .requiredOption('--to <file>', 'backup file to create, readable only by you: it holds every object')
    .addOption(dataOption())
    .option('--kubeconfig <file>', 'back up the server that this kubeconfig points to, instead of --data')
    .option('--context <name>', 'kubeconfig context (default: the current context)')
    .option('--force', 'overwrite an existing file')
    .addOption(outputOption(['json', 'yaml']))
    .action(async options => (await import('./backup.ts')).backup(options))
}
