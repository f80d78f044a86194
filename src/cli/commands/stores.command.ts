import type { DeclareCommand } from '../options.ts'
import { listenOptions, roleOptions } from '../role-options.ts'

const notes = `
Serves the state versions and locks of Stacks at /state/ and the logs of Runs at
/logs/, to everyone whom the API server authenticates and authorizes. Its address
is published in the ConfigMap oarlock-system/oarlock-endpoint-stores. /readyz
returns "ok" when it serves. Back up the data directory: it holds the states and their key.`

export const declare: DeclareCommand = (program, exitWith) => {
  const command = roleOptions(program.command('stores'), { dataName: 'states, their encryption key, and logs' })
  listenOptions(command, { port: 7468, ownCertificate: true })
    .option('--replace-stores', 'serve the states of --data although those of the installation are others, after a restore')
    .description('run only the state store and the log store')
    .addHelpText('after', notes)
    .action(async options => exitWith(await (await import('./stores.ts')).stores(options)))
}
