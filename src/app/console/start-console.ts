import { systemNamespace, tenantResource, workerPoolResource } from '../../api/index.ts'
import { ConsoleServer, type ConsoleServerOptions, History, OidcProvider, OneTimeLinks, Projections } from '../../console/index.ts'
import { type Client, leaseResource, namespaceResource } from '../../kubernetes/client/index.ts'
import type { Log, Manager } from '../../kubernetes/controller/index.ts'
import type { Controllers } from '../controllers/controllers.ts'
import { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import { authenticateByTokenReview } from '../delegated-auth/authenticate-by-token-review.ts'
import { consoleAssetsDirectory } from './assets-directory.ts'
import type { ConsoleSettings } from './console-settings.ts'
import { ownHost } from './own-host.ts'

export type StartConsoleOptions = Pick<ConsoleServerOptions, 'connect' | 'administrator' | 'version'> & {
  /** Before it is started: the console adds its caches. */
  readonly manager: Manager
  readonly controllers: Pick<Controllers, 'stacks' | 'runs' | 'workers'>
  /** With the right to review tokens and accesses. */
  readonly client: Client
  readonly settings: ConsoleSettings
  readonly log: Log
}

export type StartedConsole = {
  readonly server: ConsoleServer
  /** The secret of a link that signs the administrator in once. */
  issueLink(): string
  close(): void
}

/** Of every user who has signed in: the API server adds it to what a client sends. */
const authenticatedGroup = 'system:authenticated'

/** Adds the console to a process with the caches of Stacks, Runs and Workers. */
export function startConsole(options: StartConsoleOptions): StartedConsole {
  const { manager, controllers, client, connect, administrator, settings, version, log } = options
  const projections = new Projections({
    ...controllers,
    pools: manager.informer(workerPoolResource),
    tenants: manager.informer(tenantResource),
    namespaces: manager.informer(namespaceResource),
    leases: manager.informer(leaseResource, { namespace: systemNamespace }),
  })
  const history = new History()
  let sampledMs = Date.now()
  const sampler = setInterval(() => {
    const nowMs = Date.now()
    history.add(nowMs, projections.sample(nowMs, sampledMs))
    sampledMs = nowMs
  }, History.everyMs).unref()
  const links = new OneTimeLinks()
  const access = new AccessReviewer(client)
  const console = new ConsoleServer({
    ...{ projections, history, links, administrator, connect, version },
    assetsDirectory: consoleAssetsDirectory(),
    authenticateToken: authenticateByTokenReview(client),
    isAllowed: (user, attributes) => access.isAllowed({ ...user, groups: [...new Set([...user.groups, authenticatedGroup])] }, attributes),
    reachedBy: ownHost(settings.hosts ?? []),
    readOnly: settings.readOnly ?? false,
    oidc: settings.oidc && new OidcProvider(settings.oidc),
    onError: error => log.error({ err: error }, 'a request to the console failed'),
  })
  return {
    server: console,
    issueLink: () => {
      if (!administrator) throw new Error('this console has no administrator')
      return links.issue({ user: administrator.user, method: 'link' })
    },
    close() {
      clearInterval(sampler)
      console.close()
    },
  }
}
