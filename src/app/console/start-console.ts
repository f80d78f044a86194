import { join } from 'node:path'
import type { Registry } from 'prom-client'
import { systemNamespace, tenantResource, workerPoolResource } from '../../api/index.ts'
import {
  ConsoleServer,
  type ConsoleServerOptions,
  FleetMonitor,
  History,
  OidcProvider,
  OneTimeLinks,
  type PartitionBody,
  Projections,
} from '../../console/index.ts'
import { partitionResource } from '../../gateway/index.ts'
import { type Client, leaseResource, namespaceResource } from '../../kubernetes/client/index.ts'
import type { Informer, Log, Manager } from '../../kubernetes/controller/index.ts'
import type { Resource } from '../../kubernetes/object/index.ts'
import { readControllerMetrics } from '../controllers/controller-metrics.ts'
import type { Controllers } from '../controllers/controllers.ts'
import { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import { authenticateByTokenReview } from '../delegated-auth/authenticate-by-token-review.ts'
import { consoleAssetsDirectory } from './assets-directory.ts'
import type { ConsoleSettings } from './console-settings.ts'
import { detectPartitions } from './detect-partitions.ts'
import { HistoryFile } from './history-file.ts'
import { ownHost } from './own-host.ts'

export type StartConsoleOptions = Pick<ConsoleServerOptions, 'connect' | 'administrator' | 'version'> & {
  /** Before it is started: the console adds its caches. */
  readonly manager: Manager
  readonly controllers: Pick<Controllers, 'stacks' | 'runs' | 'workers'>
  /** With the right to review tokens and accesses. */
  readonly client: Client
  readonly settings: ConsoleSettings
  /** Where the history is kept. */
  readonly dataDir: string
  /** Of the controllers of this process. Default: it has none. */
  readonly registry?: Registry
  readonly log: Log
}

export type StartedConsole = {
  readonly server: ConsoleServer
  /** The secret of a link that signs the administrator in once. */
  issueLink(): string
  close(): Promise<void>
}

/** Of every user who has signed in: the API server adds it to what a client sends. */
const authenticatedGroup = 'system:authenticated'

/** Adds the console to a process with the caches of Stacks, Runs and Workers. */
export function startConsole(options: StartConsoleOptions): StartedConsole {
  const { manager, controllers, client, connect, administrator, settings, dataDir, registry, version, log } = options
  const pools = manager.informer(workerPoolResource)
  const sources = {
    ...{ ...controllers, pools },
    tenants: manager.informer(tenantResource),
    namespaces: manager.informer(namespaceResource),
    leases: manager.informer(leaseResource, { namespace: systemNamespace }),
  }
  const file = new HistoryFile(join(dataDir, 'console-history'), { log })
  const monitor = new FleetMonitor(sources, scaling => file.add({ atMs: scaling.atMs, scaling }))
  const showOwnControllers = (opened: Projections) => {
    if (!registry) return
    readControllerMetrics(registry).then(
      figures => opened.setOwnControllers(figures, manager.taskNames),
      error => log.warn({ err: error }, 'the console does not show the latency of controllers'),
    )
  }
  const sampler = setInterval(() => {
    const atMs = Date.now()
    file.add({ atMs, values: monitor.sample(atMs) })
    if (projections) showOwnControllers(projections)
  }, History.everyMs).unref()
  let partitions: Informer<PartitionBody> | undefined
  const stopDetection = detectPartitions({
    ...{ client, log },
    onDetected: () => {
      partitions = manager.informer(partitionResource as unknown as Resource<PartitionBody>)
      projections?.followPartitions(partitions)
    },
  })
  // Rows of the fleet are memory that no one needs who does not open the console.
  let projections: Projections | undefined
  const openProjections = () => {
    const opened = new Projections(sources)
    if (partitions) opened.followPartitions(partitions)
    showOwnControllers(opened)
    return opened
  }
  const links = new OneTimeLinks()
  const access = new AccessReviewer(client)
  const console = new ConsoleServer({
    get projections() {
      projections ??= openProjections()
      return projections
    },
    ...{ history: file.history, links, administrator, connect, version },
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
    async close() {
      clearInterval(sampler)
      stopDetection()
      await console.close()
    },
  }
}
