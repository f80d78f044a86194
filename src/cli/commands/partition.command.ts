import { Option } from 'commander'
import { collect, type DeclareCommand, dataOption, duration } from '../options.ts'
import { rolesOf } from './partition-roles.ts'

const notes = `
Run these where the data directory of home is, while home runs
("oarlock serve --home"). The files that they write contain private keys.`

const addNotes = `
The file contains the keys that all partitions share: who has it can be any user.
Copy it to the machine of the partition and start that with
"oarlock serve --partition <file> --data <dir>". Called again, the command renews
the certificate in the file; the number of a partition never changes.`

const addGatewayNotes = `
Several gateways may use one file. Its certificate lets them name any user to the
partitions. The kubeconfig is that of home's administrator, for requests through
the gateways.`

const removeNotes = `
The server of the partition stops and removes it when it has no objects, and
nothing is claimed for it: delete its Namespaces, Workers, Nodes and
PersistentVolumes first, or meanwhile.`

export const declare: DeclareCommand = program => {
  const partition = program
    .command('partition')
    .description('add and remove API servers behind a gateway, and gateways')
    .addHelpText('after', notes)
  partition
    .command('add')
    .description('add a partition, and issue the configuration of its server')
    .argument('<name>', 'name of the Partition')
    .addOption(new Option('--roles <roles>', 'Tenants, Resources or both, separated by a comma (default: unchanged)').argParser(rolesOf))
    .addOption(dataOption())
    .option('--to <file>', 'where to write the configuration (default: ./<name>.partition.json)')
    .option('--ttl <duration>', 'lifetime of the certificate', duration, '8760h')
    .addHelpText('after', addNotes)
    .action(async (name, options) => (await import('./partition-add.ts')).addPartition(name, options))
  partition
    .command('remove')
    .description('remove a partition that has nothing, or is lost')
    .argument('<name>', 'name of the Partition')
    .addOption(dataOption())
    .option('--lost', 'its server and its objects are gone for good: free their names')
    .option('-y, --yes', 'do not ask for confirmation of --lost')
    .addHelpText('after', removeNotes)
    .action(async (name, options) => (await import('./partition-remove.ts')).removePartition(name, options))
  partition
    .command('add-gateway')
    .description('issue the configuration of gateways, and a kubeconfig for them')
    .addOption(dataOption())
    .option('--server <url>', 'URL by which clients reach the gateways', 'https://127.0.0.1:7471')
    .option('--tls-san <name>', 'another host name or IP address of the gateways, repeatable', collect, [])
    .option('--to <file>', 'where to write the configuration', 'gateway.json')
    .option('--kubeconfig-to <file>', 'where to write the kubeconfig of the administrator', 'gateway.kubeconfig')
    .option('--ttl <duration>', 'lifetime of the certificates', duration, '8760h')
    .addHelpText('after', addGatewayNotes)
    .action(async options => (await import('./partition-add-gateway.ts')).addGateway(options))
}
