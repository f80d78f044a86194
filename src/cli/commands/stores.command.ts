import { auditLogOptions, type DeclareCommand } from '../options.ts'
import { listenOptions, roleOptions } from '../role-options.ts'

const notes = `
Serves the state versions and locks of Stacks at /state/ and the logs of Runs at
/logs/, to any user the API server authenticates and authorizes. Its address
is published in the ConfigMap oarlock-system/oarlock-endpoint-stores. /readyz
returns "ok" when it serves. Back up the data directory: it holds the states and their key.`

export const declare: DeclareCommand = (program, exitWith) => {
  const command = roleOptions(program.command('stores'), { dataName: 'states, their encryption key, and logs' })
  auditLogOptions(listenOptions(command, { what: 'the stores', port: 7468, ownCertificate: true }))
    .option('--replace-stores', 'after a restore: use the states in --data, even if other or newer ones are registered')
    .option('--partition <name>', 'the Partition that this server is, for the first start (default: it is none)')
    .option('--workers-kubeconfig <file>', 'in a partition: of the gateway, where the workers of all partitions are')
    .description('run only the state store and the log store')
    .addHelpText('after', notes)
    .action(async options => exitWith(await (await import('./stores.ts')).stores(options)))
}
