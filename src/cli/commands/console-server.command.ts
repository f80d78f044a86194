import { consoleOptions } from '../console-options.ts'
import type { DeclareCommand } from '../options.ts'
import { certificateOptions, roleOptions } from '../role-options.ts'

const notes = `
Serves the console of an installation on any Kubernetes API server. Users sign in
with a bearer token, which all their requests are sent with, or with an OpenID
Connect provider: then they are sent as that user and its groups, which the
ServiceAccount of this command must be allowed to impersonate. Sessions are in
its memory: run one process.`

export const declare: DeclareCommand = (program, exitWith) => {
  const command = roleOptions(program.command('console-server'), { dataName: 'its certificate' })
  consoleOptions(certificateOptions(command, { what: 'the console', port: 7473 }))
    .description('run only the console')
    .addHelpText('after', notes)
    .action(async options => exitWith(await (await import('./console-server.ts')).consoleServer(options)))
}
