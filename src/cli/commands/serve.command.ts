import { beginLeanStart } from '../lean-start.ts'
import { collect, type DeclareCommand, duration, serverOptions } from '../options.ts'
import { httpsUrl } from '../role-options.ts'

const notes = `
The administrator's kubeconfig is <data>/kubeconfig. The server is ready when
its addresses are printed; /readyz returns "ok" without credentials. SIGTERM or
Ctrl-C shuts it down: watches end, and pending requests are answered.

With --home it is the home partition of several servers behind "oarlock gateway",
with --partition another one of them (see docs/partitions.md).`

export const declare: DeclareCommand = (program, exitWith) => {
  serverOptions(program.command('serve'))
    .description('run only the Kubernetes-compatible API server')
    .option('--tls-san <name>', 'additional host name or IP address for the TLS certificate, repeatable', collect, [])
    .option('--home [name]', 'serve as the home partition, with this name (default: home)')
    .option('--partition <file>', 'serve as a partition, with its configuration of "oarlock partition add"')
    .option('--advertise-url <url>', 'URL at which gateways and partitions reach this one (default: that of --listen)', httpsUrl)
    .option('--replace-data', 'with --partition: use another data directory than before, which is lost for good (default: it is rejected)')
    .option('--grace <duration>', 'time for pending requests to finish on shutdown', duration, '5s')
    .addHelpText('after', notes)
    .action(async options => {
      beginLeanStart()
      exitWith(await (await import('./serve.ts')).serve(options))
    })
}
