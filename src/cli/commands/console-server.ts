import { parseAddress, roles } from '../../app/index.ts'
import { type ConsoleFlags, consoleSettings } from '../console-options.ts'
import { certificateFiles, type RoleListenOptions } from '../role-options.ts'
import { type RoleOptions, runRole } from '../run-role.ts'
import { packageVersion } from '../version.ts'

export type ConsoleServerOptions = RoleOptions & Omit<RoleListenOptions, 'advertiseUrl'> & ConsoleFlags

/** `oarlock console-server`: serves the console until a signal ends it. Returns the exit code. */
export async function consoleServer(options: ConsoleServerOptions): Promise<number> {
  const settings = consoleSettings(options, 'console-server')
  return await runRole('console-server', options, async ({ client, access, log, dataDir }) => {
    const { startConsoleProcess } = await roles.consoleServer()
    const { url, notReady, stop } = await startConsoleProcess({
      ...{ client, access, log, dataDir, settings, version: packageVersion() },
      // The names of browsers are in the certificate too.
      ...{ listen: parseAddress(options.listen), names: [...options.tlsSan, ...options.consoleHost] },
      certificateFiles: certificateFiles(options, 'console-server'),
    })
    return {
      rows: [
        ['console', `${url}/console/`],
        ['API', client.server],
        ['data', dataDir],
      ],
      notReady,
      ready: () => 'serving the console',
      stop,
    }
  })
}
