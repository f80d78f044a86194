import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { controllerLeaseName, defaults, stackShardsName, systemNamespace } from '../../api/index.ts'
import { type AccessOptions, type Client, createClient } from '../../kubernetes/client/index.ts'
import { collectGarbageWhenIdle, type Log } from '../../kubernetes/controller/index.ts'
import { formatDuration } from '../../kubernetes/object/index.ts'
import { makeDirectories } from '../../kubernetes/util/index.ts'
import { type Address, formatAddress } from '../address.ts'
import { AppStartError } from '../app-start-error.ts'
import { lockRoleDirectory } from '../data-directory.ts'
import { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import { authenticateByTokenReview } from '../delegated-auth/authenticate-by-token-review.ts'
import { impersonateByAccessReview } from '../delegated-auth/impersonation.ts'
import { keepPublishing, type Publication } from '../discovery/index.ts'
import { startEndpoints } from '../endpoints/endpoints.ts'
import { makeRegistry } from '../endpoints/metrics.ts'
import { createMetricsHandler } from '../endpoints/metrics-endpoint.ts'
import { createQueueHandler } from '../endpoints/queue-endpoint.ts'
import { openStatusToken } from '../endpoints/status-access.ts'
import { type ExternalMetricsOptions, startExternalMetrics } from '../external-metrics/index.ts'
import { type RoleListenerOptions, startTlsListener } from '../listener/tls-listener.ts'
import { requireNamedPartition } from '../own-partition.ts'
import { makeControllers } from './controllers.ts'
import { ensureDefaultPool } from './default-pool.ts'
import { crdRevision, describeCrdState, installOarlock, needsPolicies, readCrdState } from './install.ts'
import { liveMembers } from './live-members.ts'
import { PublishedFigures } from './published-figures.ts'
import { readOwnPartition, type SharedWorkersSettings } from './shared-workers.ts'
import { StoresClient } from './stores-client.ts'

export type ControllerProcessOptions = {
  client: Client
  /** The credentials of `client`, which the stores accept too. */
  access: AccessOptions
  /** Mirrors of git repositories. */
  cacheDir: string
  allowPaths: readonly string[]
  /** Address of health, metrics and queue. */
  healthAddress: Address
  /** Where the leader serves `/queue` over TLS, and the directory of its certificate. */
  queue: RoleListenerOptions & { dataDir: string }
  /** Where `external.metrics.k8s.io` is served for kube-apiserver. Default: it is not served. */
  externalMetrics?: Pick<ExternalMetricsOptions, 'listen' | 'certificate'> | undefined
  /** `install`: installs missing CRDs. `upgrade`: also replaces older ones. `check`: changes nothing. */
  crds: 'install' | 'upgrade' | 'check'
  /** Creates the WorkerPool `default`, unless it exists. Default: true. */
  createDefaultPool?: boolean
  maxRunning?: number | undefined
  approvalTimeoutMs?: number | undefined
  leaseDurationMs?: number | undefined
  /** In a partition: its name, and the kubeconfig of the gateway, where the workers of all partitions are. Default: the server is none. */
  shared?: { readonly partition: string; readonly kubeconfig: string; readonly viewsPerWorker?: number | undefined } | undefined
  /** How many processes share the Stacks at most. Default: the process that leads works on all of them. */
  shards?: number | undefined
  /** Lease of worker Pods. Default 10,000. */
  workerLeaseMs?: number | undefined
  version: string
  log: Log
  /** Called each time this process begins to lead, and each time it has lost the Lease, which it contends for again. Not called by `stop`. */
  onLeadershipChange?(isLeading: boolean): void
}

export type ControllerProcess = {
  readonly httpUrl: string
  readonly identity: string
  /** Undefined until external metrics are served. */
  externalMetricsUrl(): string | undefined
  /** Resolves when this process leads for the first time. */
  readonly whenLeader: Promise<void>
  /** The identity of the process that leads; undefined if it is not known. */
  leader(): string | undefined
  /** The share of the Stacks that this process works on; undefined without `shards`, and while it waits for one. */
  share(): { readonly slot: number; readonly buckets: number } | undefined
  /** The reasons why this process is not ready, with the texts of errors, which `/readyz` omits; empty if it is. */
  notReady(): readonly string[]
  /** Ends running work within `graceMs` and releases the Lease, so that the next process leads immediately. */
  stop(options: { graceMs: number }): Promise<void>
}

/** A stopped leader is replaced within this time; a killed one when its Lease has expired. */
const electionRetryMs = 1_000
const defaultLeaseMs = 15_000
/** Stores that run apart can be replaced while the controllers run: the state of an idle Stack is checked at the start and this often. */
const stateCheckIntervalMs = 10 * 60_000
/** Of idle Stacks. Those that need a Run are checked immediately. */
const stateChecksPerSecond = 20

/**
 * `oarlock controller`: the stack and dispatch controllers against any Kubernetes API server. Several processes may run; one leads. With `shards` they
 * share the Stacks, and what is decided about all of them together (dispatch, pools, lost workers) is left to the one that leads.
 * @throws {AppStartError} if the server has other CRDs than this version needs, the data directory or an address cannot be used, the server is another partition
 * than named, or without `shards` if other processes share the Stacks.
 */
export async function startControllerProcess(options: ControllerProcessOptions): Promise<ControllerProcess> {
  const release = lockRoleDirectory(options.queue.dataDir, 'controller', options.log)
  try {
    const started = await start(options)
    return { ...started, stop: async stopping => await started.stop(stopping).finally(release) }
  } catch (error) {
    release()
    throw error
  }
}

async function start(options: ControllerProcessOptions): Promise<ControllerProcess> {
  const { client, access, log, leaseDurationMs = defaultLeaseMs } = options
  // Before anything is installed on the server of another one.
  await requireNamedPartition(client, options.shared?.partition)
  await prepareServer(options)
  // The random part tells restarts apart in containers, where process ids repeat.
  const identity = `${hostname()}_${process.pid}_${randomUUID().slice(0, 8)}`
  const durations = {
    leaseDurationMs,
    renewDeadlineMs: (leaseDurationMs * 2) / 3,
    retryPeriodMs: Math.min(electionRetryMs, leaseDurationMs / 6),
  }
  if (options.shards === undefined) await requireNoRing(client, durations.retryPeriodMs)
  const shared = options.shared && (await openSharedWorkers(client, options.shared))
  const registry = makeRegistry()
  makeDirectories(options.cacheDir, 0o700)
  const stores = new StoresClient({ client, access })
  const figures = new PublishedFigures(registry, log)
  const isLeaders = (controller: string) => manager.leaderTaskNames.includes(controller)
  const controllers = makeControllers({
    client,
    shared,
    // A worker Pod is in the cluster of this API server, and finds the stores there.
    podWorkers: shared
      ? undefined
      : { environment: { OARLOCK_LEASE_DURATION: formatDuration(options.workerLeaseMs ?? defaults.leaseDurationMs) } },
    checkState: stores.checkState,
    readPendingOperations: stores.readPendingOperations,
    stateCheckRate: { intervalMs: stateCheckIntervalMs, perSecond: stateChecksPerSecond },
    removeStackData: async stack => await stores.removeStackData(stack),
    allowPaths: options.allowPaths,
    cacheDir: options.cacheDir,
    maxRunning: options.maxRunning,
    approvalTimeoutMs: options.approvalTimeoutMs,
    leaderElection: {
      leaseName: controllerLeaseName,
      namespace: systemNamespace,
      identity,
      ...durations,
      annotations: () => figures.annotations(isLeaders),
    },
    shards:
      options.shards === undefined
        ? undefined
        : {
            name: stackShardsName,
            namespace: systemNamespace,
            slots: options.shards,
            identity: `${hostname()}_${process.pid}`,
            ...durations,
            annotations: () => figures.annotations(controller => !isLeaders(controller)),
          },
    registry,
    log,
  })
  const { manager } = controllers
  let isStopping = false
  manager.add({
    name: 'report leadership',
    start: async signal => {
      options.onLeadershipChange?.(true)
      await aborted(signal)
      if (!isStopping) options.onLeadershipChange?.(false)
    },
  })
  // Elsewhere it is a copy of home's.
  if ((options.createDefaultPool ?? true) && (!shared || shared.isHome))
    manager.add({
      name: 'create the default pool',
      start: async () => await ensureDefaultPool(manager.leaderClient),
    })
  const authenticate = authenticateByTokenReview(client)
  let publication: Publication | undefined
  const queue = await startTlsListener({
    ...options.queue,
    role: 'queue',
    authenticate,
    impersonate: impersonateByAccessReview(new AccessReviewer(client)),
    mounts: [
      { prefix: '/queue', handler: createQueueHandler(client, controllers.dispatch.queue) },
      { prefix: '/metrics', handler: createMetricsHandler(client, registry) },
    ],
    notReady: () => [],
    onCaChange: caCertificate => publication?.replace({ url: options.queue.advertiseUrl ?? queue.url, caCertificate }),
    onError: error => log.error({ err: error }, 'request for the queue failed'),
  })
  manager.addReadinessCheck(() => (isStopping ? ['the controller is shutting down'] : (publication?.notReady() ?? [])))
  manager.add({
    name: 'publish the address of the queue',
    start: async signal => {
      const endpoint = { url: options.queue.advertiseUrl ?? queue.url, caCertificate: queue.caCertificate }
      // Not `client`: a former leader must not replace the address of the next one.
      publication = keepPublishing({ client: manager.leaderClient, role: 'queue', endpoint, log })
      await aborted(signal)
      // Before the Lease is released: then no other process has published yet.
      if (isStopping) await publication.withdraw()
      else publication.stop()
      publication = undefined
    },
  })
  const listener = await startEndpoints({
    address: options.healthAddress,
    controllers,
    registry,
    mounts: [],
    statusToken: openStatusToken(options.queue.dataDir),
    log,
  })
  const { dataDir } = options.queue
  const externalMetrics =
    options.externalMetrics && startExternalMetrics({ ...options.externalMetrics, client, manager, dataDir, authenticate, log })
  // Not awaited: a kind that cannot be listed must not hide the health endpoints, which report it.
  const stopCollecting = collectGarbageWhenIdle()
  manager.start().catch((error: unknown) => log.error({ err: error }, 'failed to start the controllers'))
  return {
    httpUrl: `http://${formatAddress(listener.address)}`,
    identity,
    externalMetricsUrl: () => externalMetrics?.url,
    whenLeader: manager.whenLeader,
    leader: () => manager.leader,
    share: () => {
      const slot = manager.shards?.slot
      const member = slot === undefined ? undefined : manager.shards?.view()?.members.find(each => each.slot === slot)
      return member && { slot: member.slot, buckets: member.buckets.length }
    },
    notReady: () => manager.readyz().reasons,
    stop: async ({ graceMs }) => {
      stopCollecting()
      isStopping = true
      await manager.stop({ graceMs })
      await listener.close()
      await queue.close()
      await externalMetrics?.close()
      await stores.close()
      await shared?.client.close()
    },
  }
}

async function openSharedWorkers(
  client: Client,
  { kubeconfig, ...options }: NonNullable<ControllerProcessOptions['shared']>,
): Promise<SharedWorkersSettings> {
  const { isHome } = await readOwnPartition(client, options.partition)
  const gateway = await createClient({ kubeconfig, userAgent: 'oarlock-controller', fieldManager: `oarlock-${options.partition}` })
  return { ...options, isHome, client: gateway }
}

/** Members of the ring and an unsharded leader do not know of each other: both would work on all Stacks. */
async function requireNoRing(client: Client, retryPeriodMs: number): Promise<void> {
  const live = await liveMembers(client, { name: stackShardsName, namespace: systemNamespace }, retryPeriodMs * 3)
  if (live.length === 0) return
  throw new AppStartError(
    'Shards',
    `${live.length === 1 ? 'a process shares' : `${live.length} processes share`} the Stacks, such as ${JSON.stringify(live[0])}, and this one has no --shards`,
    'start this process with the same --shards, or stop all controllers before you turn sharding off',
  )
}

const aborted = (signal: AbortSignal) => new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))

/** Installs the CRDs, namespaces, roles and policies, or checks the CRDs. Only with `upgrade` roles and policies that are older than the CRDs are replaced. */
export async function prepareServer({ client, crds, log }: Pick<ControllerProcessOptions, 'client' | 'crds' | 'log'>): Promise<void> {
  const state = await readCrdState(client)
  const isAllowed = crds === 'upgrade' || (crds === 'install' && state.kind === 'missing')
  if ((state.kind === 'missing' || state.kind === 'older') && !isAllowed) {
    const flag = state.kind === 'missing' ? 'install' : 'upgrade'
    throw new AppStartError(
      'Crds',
      `the server ${client.server} ${describeCrdState(state)}`,
      `as a user who may write CRDs, apply the output of "oarlock manifests", or run "oarlock controller --crds ${flag}" instead of this process`,
    )
  }
  if (state.kind === 'newer') log.info({ revision: state.revision, own: crdRevision }, 'the server has newer CRDs')
  // Newer CRDs are kept: this process may be the old one of a rolling update.
  if (state.kind === 'missing' || state.kind === 'older') return await installOarlock(client)
  // After "oarlock crds upgrade" only the CRDs are of this revision.
  if (crds === 'upgrade' && state.kind === 'current' && (await needsPolicies(client))) await installOarlock(client)
}
