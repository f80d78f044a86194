import { type DeclareCommand, dataOption, outputOption, yesOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  const encryption = program.command('encryption').description('rotate the key that encrypts Secrets at rest')
  encryption
    .command('rotate')
    .description('re-encrypt all Secrets with a new key, even while the server runs')
    .addOption(dataOption())
    .option('--kubeconfig <file>', 'rotate the key of the server that this kubeconfig points to, instead of --data')
    .option('--context <name>', 'kubeconfig context (default: the current context)')
    .option('--remove-old-keys', 'remove the old keys: earlier backups cannot be restored without a copy of them')
    .addOption(yesOption())
    .addOption(outputOption(['json', 'yaml']))
    .action(async options => (await import('./encryption.ts')).rotate(options))
}
