import { join } from 'node:path'
import type { Registry } from 'prom-client'
import { systemNamespace, tenantResource, workerPoolResource } from '../../api/index.ts'
import { ConsoleServer, FleetMonitor, History, OneTimeLinks, type PartitionBody, Projections } from '../../console/index.ts'
import { partitionResource } from '../../gateway/index.ts'
import { type Client, createClient, leaseResource, namespaceResource } from '../../kubernetes/client/index.ts'
import type { Informer, Log, Manager } from '../../kubernetes/controller/index.ts'
import type { Resource } from '../../kubernetes/object/index.ts'
import { type ApiServer, adminsGroup } from '../../kubernetes/server/index.ts'
import type { Controllers } from '../controllers/controllers.ts'
import { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import { authenticateByTokenReview } from '../delegated-auth/authenticate-by-token-review.ts'
import { isPartition } from '../is-partition.ts'
import { consoleAssetsDirectory } from './assets-directory.ts'
import { openConsoleToken } from './console-access.ts'
import { readControllerMetrics } from './controller-metrics.ts'
import { HistoryFile } from './history-file.ts'

export type StartConsoleOptions = {
  readonly dataDir: string
  /** Before it is started: the console adds its caches. */
  readonly manager: Manager
  readonly controllers: Pick<Controllers, 'stacks' | 'runs' | 'workers'>
  readonly server: ApiServer
  /** With the right to review tokens and accesses. */
  readonly client: Client
  readonly version: string
  /** Of this process, whose controllers the console shows. */
  readonly registry: Registry
  readonly log: Log
}

export type StartedConsole = {
  readonly server: ConsoleServer
  /** The secret of a link that signs the administrator in once. */
  issueLink(): string
  close(): void
}

/** Of the process that owns the data directory: a user who may read that is its administrator. */
const administrator = { name: 'oarlock:admin', groups: [adminsGroup] }
/** Longer than any session. */
const localTokenMs = 24 * 3_600_000

/** Adds the console to a process with controllers and an API server. */
export function startConsole({
  dataDir,
  manager,
  controllers,
  server,
  client,
  version,
  registry,
  log,
}: StartConsoleOptions): StartedConsole {
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
    readControllerMetrics(registry).then(
      rows => opened.setOwnControllers(rows),
      error => log.warn({ err: error }, 'the console does not show the latency of controllers'),
    )
  }
  const sampler = setInterval(() => {
    const atMs = Date.now()
    file.add({ atMs, values: monitor.sample(atMs) })
    if (projections) showOwnControllers(projections)
  }, History.everyMs).unref()
  let partitions: Informer<PartitionBody> | undefined
  isPartition(client).then(
    hasPartitions => {
      if (hasPartitions) partitions = manager.informer(partitionResource as unknown as Resource<PartitionBody>)
    },
    error => log.warn({ err: error }, 'the console does not show partitions'),
  )
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
    ...{ history: file.history, links, version },
    linkToken: openConsoleToken(dataDir),
    linkUser: administrator,
    assetsDirectory: consoleAssetsDirectory(),
    authenticateToken: authenticateByTokenReview(client),
    isAllowed: (user, attributes) => access.isAllowed({ ...user, groups: [...user.groups] }, attributes),
    connect: async (user, credential) => {
      const token =
        credential.kind === 'token'
          ? credential.token
          : server.issueToken({ name: user.name, groups: [...user.groups], ttlMs: localTokenMs })
      return await createClient({
        cluster: { server: server.url, caCertificate: server.caCertificate, token },
        ...{ userAgent: 'oarlock-console', fieldManager: 'oarlock-console', connections: 2 },
      })
    },
    secure: false,
    onError: error => log.error({ err: error }, 'a request to the console failed'),
  })
  return {
    server: console,
    issueLink: () => links.issue(administrator),
    close() {
      clearInterval(sampler)
      console.close()
    },
  }
}
