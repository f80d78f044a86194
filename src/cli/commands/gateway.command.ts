import { Option } from 'commander'
import { beginLeanStart } from '../lean-start.ts'
import { type DeclareCommand, positiveInteger } from '../options.ts'

const notes = `
Clients use the address of a gateway as that of their API server: with a token
or a client certificate that is valid at home, or the token of a ServiceAccount
of any namespace. Several gateways may run; they keep nothing and do not
coordinate. /livez and /readyz need no credential, /metrics the right to get it.
docs/partitions.md has the whole picture.`

export const declare: DeclareCommand = (program, exitWith) => {
  program
    .command('gateway')
    .description('serve one Kubernetes API for all partitions')
    .addOption(new Option('--config <file>', 'configuration of "oarlock partition add-gateway"').makeOptionMandatory())
    .option('--listen <host:port>', 'address of the API (TLS); port 0 picks a free port', '127.0.0.1:7471')
    .option('--tenant-requests <n>', 'requests in progress for the namespaces of one Tenant', positiveInteger, 400)
    .option('--user-requests <n>', 'requests in progress of one user', positiveInteger, 200)
    .option('--tenant-watches <n>', 'open watches of the namespaces of one Tenant', positiveInteger, 5_000)
    .option('--user-watches <n>', 'open watches of one user', positiveInteger, 1_000)
    .option('--log <file>', 'log file, - for stderr', '-')
    .addOption(new Option('--log-level <level>', 'minimum log level').choices(['debug', 'info', 'warn', 'error']).default('info'))
    .addHelpText('after', notes)
    .action(async options => {
      beginLeanStart()
      exitWith(await (await import('./gateway.ts')).gateway(options))
    })
}
