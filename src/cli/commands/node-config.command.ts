import { type DeclareCommand, dataOption, duration } from '../options.ts'

const collect = (value: string, before: string[]) => [...before, value]

export const declare: DeclareCommand = program => {
  program
    .command('node-config')
    .description('issue the certificates of a kubelet that joins the server')
    .argument('<node>', 'name of the Node')
    .addOption(dataOption())
    .option('--server <url>', 'URL of the API server as the node reaches it (default: that of the kubeconfig in the data directory)')
    .option('--address <ip-or-name>', 'another name or address of the node for its serving certificate; repeatable', collect, [])
    .option('--to <dir>', 'directory for the files, which are replaced (default: ./<node>)')
    .option('--ttl <duration>', 'lifetime of the certificates', duration, '8760h')
    .action(async (node, options) => (await import('./node-config.ts')).nodeConfig(node, options))
}
