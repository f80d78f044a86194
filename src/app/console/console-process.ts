import { runResource, stackResource, workerResource } from '../../api/index.ts'
import type { ConsoleServerOptions } from '../../console/index.ts'
import { type AccessOptions, allowedSubjectName, type Client, createClient, isSubjectName } from '../../kubernetes/client/index.ts'
import { type Log, Manager } from '../../kubernetes/controller/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { escapeHidden } from '../../kubernetes/util/index.ts'
import { lockRoleDirectory } from '../data-directory.ts'
import { authenticateByTokenReview } from '../delegated-auth/authenticate-by-token-review.ts'
import { readEndpoint } from '../discovery/index.ts'
import { makeRegistry } from '../endpoints/metrics.ts'
import { createMetricsHandler } from '../endpoints/metrics-endpoint.ts'
import { type RoleListenerOptions, startTlsListener } from '../listener/tls-listener.ts'
import type { MountHandler } from '../mount.ts'
import type { RoleProcess } from '../role-process.ts'
import { consoleClient } from './console-client.ts'
import type { ConsoleSettings } from './console-settings.ts'
import { startConsole } from './start-console.ts'
import { StoreClient } from './store-client.ts'

export type ConsoleProcessOptions = Omit<RoleListenerOptions, 'advertiseUrl'> & {
  client: Client
  /** The credentials of `client`, which impersonates users of an OIDC provider. */
  access: AccessOptions
  /** Has its certificate. */
  dataDir: string
  settings: ConsoleSettings
  version: string
  log: Log
}

/**
 * `oarlock console-server`: the console of an installation on a Kubernetes API server. Sessions are in its memory, so there is one such process.
 * @throws {AppStartError} if the data directory or the address cannot be used.
 */
export async function startConsoleProcess(options: ConsoleProcessOptions): Promise<RoleProcess> {
  const { client, settings, version, log } = options
  const release = lockRoleDirectory(options.dataDir, 'console-server', log)
  const manager = new Manager({ client, log })
  const controllers = {
    stacks: manager.informer(stackResource),
    runs: manager.informer(runResource),
    workers: manager.informer(workerResource),
  }
  const console = startConsole({
    ...{ manager, controllers, client, settings, version, log, dataDir: options.dataDir },
    connect: connectAs(options),
  })
  const readiness = () => manager.readyz()
  try {
    const listener = await startTlsListener({
      ...options,
      role: 'console',
      authenticate: authenticateByTokenReview(client),
      mounts: [
        { prefix: '/console/', handler: (request, response) => console.server.handle(pathOf(request.url), request, response) },
        { prefix: '/metrics', handler: createMetricsHandler(client, makeRegistry()) },
        { prefix: '/', handler: toConsole },
      ],
      notReady: () => readiness().publicReasons,
      onError: error => log.error({ err: error }, 'a request to the console failed'),
    })
    // Not awaited: an API server that cannot be reached must not hide the health endpoints, which report it.
    manager.start().catch((error: unknown) => log.error({ err: error }, 'failed to start the caches of the console'))
    return {
      url: listener.url,
      notReady: () => readiness().reasons,
      stop: async () => {
        await console.close()
        await manager.stop()
        await listener.close().finally(release)
      },
    }
  } catch (error) {
    await console.close()
    release()
    throw error
  }
}

/** With the token of the user, or for a user whom the provider has authenticated by impersonation. */
function connectAs({ client, access }: ConsoleProcessOptions): ConsoleServerOptions['connect'] {
  return async ({ name, groups }, credential) => {
    const rejected = credential.kind === 'token' ? undefined : [name, ...groups].find(text => !isSubjectName(text))
    if (rejected !== undefined)
      throw new StatusError(
        'Forbidden',
        `the user or group ${escapeHidden(JSON.stringify(rejected.slice(0, 80)))} cannot be impersonated: ask the administrator for ${allowedSubjectName}`,
      )
    const own: AccessOptions = {
      ...access,
      ...(credential.kind === 'token' ? { bearerToken: credential.token } : { impersonate: { user: name, groups } }),
    }
    return new StoreClient(await createClient({ ...own, ...consoleClient }), own, () => readEndpoint(client, 'stores'))
  }
}

const pathOf = (url = '/') => url.split('?', 1)[0] ?? '/'

const toConsole: MountHandler = async ({ url }, response) => {
  if (pathOf(url) === '/') response.writeHead(302, { Location: '/console/' }).end()
  else
    response.writeHead(404, { 'Content-Type': 'text/plain; charset=utf-8' }).end('not found: use /console/, /livez, /readyz or /metrics\n')
}
