import type { DeclareCommand } from '../options.ts'
import { listenOptions, roleOptions } from '../role-options.ts'

const notes = `
Exchanges join tokens ("oarlock token create") for the credentials of workers: a
worker on another machine needs only the address of this service and a token. Each
credential is the token of a ServiceAccount in the namespace oarlock-workers.`

export const declare: DeclareCommand = (program, exitWith) => {
  const command = roleOptions(program.command('join-service'), { dataName: 'its certificate authority' })
  listenOptions(command, { what: 'the join service', port: 7469, ownCertificate: false })
    .option('--api-url <url>', 'URL at which workers reach the API server (default: that of the kubeconfig)')
    .option('--api-ca-file <file>', 'certificate authority of --api-url (default: that of the kubeconfig)')
    .description('run only the service where workers join')
    .addHelpText('after', notes)
    .action(async options => exitWith(await (await import('./join-service.ts')).joinService(options)))
}
