import { accessOptions, type DeclareCommand, durationBetween, outputOption, yesOption } from '../options.ts'

export const declare: DeclareCommand = program => {
  const state = program.command('state').description('show, lock, roll back and recover the state of Stacks')
  const command = (name: string, description: string) =>
    accessOptions(state.command(name)).description(description).argument('<stack>', 'NAME or stack/NAME')
  const load = () => import('./state.ts')

  accessOptions(state.command('list'), { allNamespaces: true })
    .description('list Stacks with their latest state version, orphaned versions and lock')
    .addOption(outputOption(['json', 'yaml']))
    .action(async options => (await load()).list(options))
  command('show', 'show resources and outputs, with secret values masked')
    .option('--version <n>', 'state version (default: the latest)')
    .addOption(outputOption(['json', 'yaml']))
    .action(async (target, options) => (await load()).show(target, options))
  command('versions', 'list stored state versions, including rejected (orphaned) ones')
    .addOption(outputOption(['json', 'yaml']))
    .action(async (target, options) => (await load()).versions(target, options))
  command('rollback', 'make an older version the current one')
    .requiredOption('--to <n>', 'state version')
    .addOption(yesOption())
    .action(async (target, options) => (await load()).rollback(target, options))
  command('recover', 'make an orphaned version, rejected by fencing, the current state')
    .option('--version <n>', 'orphaned version (default: that of the latest Run)')
    .addOption(yesOption())
    .action(async (target, options) => (await load()).recover(target, options))
  command('lock', 'lock the state: Runs wait (StateLocked) while it is locked')
    .option('--reason <text>', 'reason shown to other users (default: "oarlock state lock")')
    .action(async (target, options) => (await load()).lock(target, options))
  command('unlock', 'release the lock of a user, or of a Run that has ended')
    .option('--id <id>', 'release only the lock with this id, without confirmation')
    .addOption(yesOption())
    .action(async (target, options) => (await load()).unlock(target, options))
  command('pull', 'print the raw state, including secrets')
    .option('--version <n>', 'state version (default: the latest)')
    .option('--orphan', 'with --version: an orphaned version')
    .option(
      '--encrypt-with-passphrase',
      'Pulumi: encrypt secrets with PULUMI_CONFIG_PASSPHRASE, for "pulumi stack import" into another backend',
    )
    .option('--show-secrets', 'Pulumi: secrets in plain text')
    .option('--to <file>', 'write to a new file that only you can read (default: stdout)')
    .action(async (target, options) => (await load()).pull(target, options))
  command('import', 'import an existing state as the first state of a Stack')
    .requiredOption('--from <file|dir|url>', 'state file, - for stdin, root module from which to run "state pull", or backend of Pulumi')
    .option(
      '--pulumi-stack <name>',
      'which stack of a backend of Pulumi, as PROJECT/STACK (default: the only one with the name of the stack)',
    )
    .option('--force', 'even if the Stack has a state, or the imported state has no resources')
    .addOption(yesOption())
    .addHelpText('after', importHelp)
    .action(async (target, options) => (await import('./state-import.ts')).importState(target, options))
  command('push', 'upload a newer version of the state of a Stack')
    .argument('<file>', 'state as JSON, or - for stdin')
    .option('--force', 'allow another lineage or a lower serial')
    .addOption(yesOption())
    .action(async (target, file, options) => (await load()).push(target, file, options))
  command('accept', 'run a Stack with the stored state, although a Run has stored a newer one')
    .addOption(yesOption())
    .action(async (target, options) => (await import('./state-accept.ts')).acceptState(target, options))
  command('token', 'print the token of the Stack, with which Terraform uses its state').action(async (target, options) =>
    (await load()).token(target, options),
  )
  command('rotate-token', 'replace the token of the Stack and print the new one')
    .option('--grace <duration>', 'how long the old token stays valid, 0s to 720h', durationBetween('0s', '720h'), '0s')
    .addOption(yesOption())
    .addOption(outputOption(['json', 'yaml']))
    .action(async (target, options) => (await load()).rotateToken(target, options))
  command('reset-fence', 'accept writes of Runs again, after a Run with a wrong epoch has raised the fence')
    .option('--epoch <n>', 'number of the last Run: the next one continues from it (default: the one in the status of the Stack)')
    .option('--force', 'even while a Run is active, which can then no longer write')
    .addOption(yesOption())
    .addOption(outputOption(['json', 'yaml']))
    .addHelpText('after', resetFenceHelp)
    .action(async (target, options) => (await import('./reset-fence.ts')).resetFence(target, options))
}

const importHelp = `
The state must be complete and of format 4 (Terraform and OpenTofu write it since 0.12). In a directory, the engine of the Stack runs "state
pull" with your environment and your credentials, after "init" as usual; its selected workspace is imported. Nothing is written to the old
backend. The stored version names you as its author. docs/move-an-existing-repository.md has all steps.`

const resetFenceHelp = `
Each Run has a higher number than the one before, its epoch, and the state store rejects writes of older Runs. A Run with a wrong, very
high epoch makes the store reject every later Run with StaleEpoch, or leaves the Stack without a next number. This command lets the
store accept the Run after --epoch, rejects all up to it, and sets the number in the status of the Stack. Versions of the state do not
change. It requires "update" on stacks/fence and on stacks/status, which only administrators have by default.`
