import type { ConsoleServerOptions } from '../../console/index.ts'
import { createClient } from '../../kubernetes/client/index.ts'
import { type ApiServer, adminsGroup } from '../../kubernetes/server/index.ts'
import { openConsoleToken } from './console-access.ts'
import { consoleClient } from './console-client.ts'

/** Longer than any session. */
const localTokenMs = 24 * 3_600_000

/** Clients of the API server in this process: it issues tokens of the users who have signed in with a link or an OIDC provider. */
export const connectToOwnServer =
  (server: ApiServer): ConsoleServerOptions['connect'] =>
  async ({ name, groups }, credential) => {
    const token = credential.kind === 'token' ? credential.token : server.issueToken({ name, groups: [...groups], ttlMs: localTokenMs })
    return await createClient({ cluster: { server: server.url, caCertificate: server.caCertificate, token }, ...consoleClient })
  }

/** Of the process that owns the data directory: a user who may read that is its administrator. */
export const administratorOf = (dataDir: string) => ({
  user: { name: 'oarlock:admin', groups: [adminsGroup] },
  linkToken: openConsoleToken(dataDir),
})
