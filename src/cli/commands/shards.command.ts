import { accessOptions, type DeclareCommand, outputOption } from '../options.ts'

const notes = `
KEY is the NAME of a Stack, NAMESPACE/NAME, stack/NAME or another TYPE/NAME with
-n NAMESPACE, or the UID of a root. The bucket of a root follows from its UID,
that of an owned object is in its label; the member that holds the bucket is the
only one that works on the object. While a bucket moves, it has no owner for a
moment.`

export const declare: DeclareCommand = program => {
  accessOptions(program.command('shards'))
    .description('show how the replicas of sharded controllers share the keys')
    .argument('[key]', 'show also the bucket and the owner of this Stack, object or UID')
    .option('--ring <name>', 'ring, as named by the operator', 'oarlock-stacks')
    .option('--ring-namespace <namespace>', 'namespace of its Leases', 'oarlock-system')
    .addOption(outputOption(['json', 'yaml', 'wide']))
    .addHelpText('after', notes)
    .action(async (key, options) => (await import('./shards.ts')).shards(key, options))
}
