import { beginLeanStart } from '../lean-start.ts'
import { collect, type DeclareCommand, duration, serverOptions } from '../options.ts'

const notes = `
The administrator's kubeconfig is <data>/kubeconfig. The server is ready when
its addresses are printed; /readyz returns "ok" without credentials. SIGTERM or
Ctrl-C shuts it down: watches end, and pending requests are answered.`

export const declare: DeclareCommand = (program, exitWith) => {
  serverOptions(program.command('serve'))
    .description('run only the Kubernetes-compatible API server')
    .option('--tls-san <name>', 'additional host name or IP address for the TLS certificate, repeatable', collect, [])
    .option('--grace <duration>', 'time for pending requests to finish on shutdown', duration, '5s')
    .addHelpText('after', notes)
    .action(async options => {
      beginLeanStart()
      exitWith(await (await import('./serve.ts')).serve(options))
    })
}
