import { cpus } from 'node:os'
import { join, resolve } from 'node:path'
import type { Run, Stack } from '../api/index.ts'
import { capabilitiesFromEnv, countUnsavedStates } from '../execution/worker/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { collectGarbageWhenIdle, type Informer, type Log, silentLog } from '../kubernetes/controller/index.ts'
import { formatDuration } from '../kubernetes/object/index.ts'
import type { ApiServer, AuditOptions } from '../kubernetes/server/index.ts'
import { fullDiskReasons } from '../kubernetes/util/index.ts'
import { type Address, formatAddress, urlOf } from './address.ts'
import { startApiServer } from './api-server/api-server.ts'
import { administratorOf, type ConsoleSettings, connectToOwnServer, consoleLink, startConsole } from './console/index.ts'
import { makeControllers } from './controllers/controllers.ts'
import { ensureDefaultPool } from './controllers/default-pool.ts'
import { installOarlock, requireNoNewerCrds } from './controllers/install.ts'
import { checkStoredState, pendingOperationsOf } from './controllers/state-check.ts'
import { checkSandboxBinds } from './data-directory.ts'
import { checkOrigin, recordOrigin } from './data-origin.ts'
import { withdrawEndpoints } from './discovery/index.ts'
import { startEndpoints } from './endpoints/endpoints.ts'
import { makeRegistry } from './endpoints/metrics.ts'
import { createQueueHandler } from './endpoints/queue-endpoint.ts'
import { openStatusToken, recordStatusUrl } from './endpoints/status-access.ts'
import { CredentialRevoker, createJoinHandler, JoinService, serverTokenIssuer } from './join/index.ts'
import { requireNoPartition } from './partition/identity.ts'
import { drainProcessPool, openProcessPool } from './process-pool/local-pool.ts'
import { keepClaim } from './stores/keep-claim.ts'
import { openStores, serveStores } from './stores/stores.ts'
import { whileClaimed } from './stores/while-claimed.ts'
import { toAppStartError } from './to-app-start-error.ts'

export type AllInOneOptions = {
  /** Holds everything that outlives the process; created if missing. */
  dataDir: string
  /** Address of the API server (TLS). Default 127.0.0.1:7466. Port 0 means the port of the previous process if it is free, else any. */
  listen?: Address
  /** Address of the console, metrics, queue and health endpoints. Default 127.0.0.1:7467. */
  healthAddress?: Address
  /** Additional host names and IP addresses for the TLS certificate, for workers on other machines. */
  names?: readonly string[]
  /** Directories below which Stacks may use `source.path` and file:// repositories. Default: none. */
  allowPaths?: readonly string[]
  /** `max`: maximum size of the WorkerPool `default`. Default: one per core, at least 2, for a new pool; an existing pool is kept. */
  pool?: { max?: number }
  /** Maximum concurrent Runs over all pools. Default: unlimited. */
  maxRunning?: number
  /** How long an approval is valid. Default 24 hours. */
  approvalTimeoutMs?: number
  /** How long the Lease of a worker that this process starts lasts, in milliseconds, at most `defaults.maxLeaseDurationMs`. Default 10 seconds. */
  workerLeaseMs?: number
  /** Makes the stores of `dataDir` those of the installation, although stores that ran apart are. Default false. */
  replaceStores?: boolean
  /** Default: links and tokens, on loopback names. */
  console?: ConsoleSettings
  /** The audit log of the API server. Default: none. */
  audit?: AuditOptions | undefined
  /** Program and leading arguments that start a worker, such as Node and bin/oarlock.js. */
  launcher: readonly string[]
  version: string
  log?: Log
  /** Called when this process has locked `dataDir`, before anything of another process could be changed. */
  onLocked?(): void
}

export type AllInOne = {
  readonly server: ApiServer
  readonly apiUrl: string
  readonly httpUrl: string
  /** A link that opens the console and signs the administrator in, once. */
  consoleLink(): string
  readonly kubeconfigPath: string
  /** Where the data directory was copied from; undefined if it is no copy. */
  readonly copiedFrom: { readonly host: string; readonly path: string } | undefined
  /** A client with the rights of an administrator. */
  readonly client: Client
  readonly stacks: Informer<Pick<Stack, 'spec' | 'status'>>
  readonly runs: Informer<Pick<Run, 'spec' | 'status'>>
  /**
   * Shuts down gracefully: starts no Run, lets workers finish for `graceMs` (default 30,000), then interrupts their engines so that they
   * save their state, and closes everything. `interrupt` ends the wait early.
   */
  stop(options?: { graceMs?: number; onProgress?: (running: number) => void }): Promise<void>
  /** Interrupts the engines immediately during `stop`. */
  interrupt(): void
}

/** How long running reconciles may take on shutdown. */
const controllersGraceMs = 5_000

/**
 * Starts every role in this process: API server, stores, controllers, process pool, join service and HTTP endpoints. Roles use each
 * other through their typed handles only; `oarlock serve`, `stores`, `controller`, `join-service` and `pool` run one each.
 * @throws {AppStartError} if the data directory or an address cannot be used.
 */
export async function startAllInOne(options: AllInOneOptions): Promise<AllInOne> {
  const { log = silentLog, launcher, version } = options
  const dataDir = resolve(options.dataDir)
  const listen = options.listen ?? { host: '127.0.0.1', port: 7466 }
  const healthAddress = options.healthAddress ?? { host: '127.0.0.1', port: 7467 }
  const allowPaths = (options.allowPaths ?? []).map(path => resolve(path))
  /** Run in reverse order when the start fails, and on shutdown. */
  const cleanups: (() => Promise<void> | void)[] = []
  const cleanUp = async () => {
    for (const step of cleanups.splice(0).reverse()) await step()
  }

  checkSandboxBinds(dataDir)
  try {
    requireNoPartition(dataDir)
    const copiedFrom = checkOrigin(dataDir)
    const startingApi = startApiServer({
      dataDir,
      listen,
      names: options.names,
      mounts: ['/state/', '/logs/', '/queue', '/join'],
      audit: options.audit,
      log,
    })
    const openingStores = openStores({ dataDir, log })
    const [apiStart, storesStart] = await Promise.allSettled([startingApi, openingStores])
    if (apiStart.status === 'fulfilled') cleanups.push(() => apiStart.value.server.close())
    if (storesStart.status === 'fulfilled') cleanups.push(() => storesStart.value.close())
    // If both fail, for example on a data directory in use, the error of the server is the more helpful one.
    const api = await startingApi
    const stores = await openingStores
    options.onLocked?.()
    recordOrigin(dataDir)
    if (copiedFrom) log.warn({ dataDir, copiedFrom }, 'the data directory was copied: the original must not be used any more')
    const { server, mounts } = api
    const { url, caCertificate } = server

    const client = await api.connect({ name: 'oarlock:controllers', groups: ['system:masters'] }, 'oarlock-controllers')
    cleanups.push(() => client.close())
    await requireNoNewerCrds(client, dataDir)
    await installOarlock(client)
    const claim = await keepClaim({
      ...{ client, dataDir, log, replace: options.replaceStores ?? false },
      // Of one API server only one process of this kind runs, which is this one.
      stores: { id: stores.id, generation: stores.generation, lockId: 'up' },
      // Reported by /readyz. The process does not exit: the other stores need its API server.
      onLost: () => {},
    })
    cleanups.push(() => claim.release())
    await withdrawEndpoints(client)
    await ensureDefaultPool(client, { max: options.pool?.max, newMax: Math.max(2, cpus().length) })
    const joinService = new JoinService({ client, issueCredential: serverTokenIssuer(server) })
    mounts.set('/join', createJoinHandler({ joinService, caCertificate }))

    const pool = openProcessPool({
      dataDir,
      launcher,
      allowPaths,
      log,
      connection: async (workerName, pool) => {
        const issued = await joinService.issue(workerName, pool, capabilitiesFromEnv(process.env).labels)
        if ('code' in issued) throw new Error(issued.message)
        return {
          OARLOCK_SERVER: server.unixSocketUrl ?? url,
          OARLOCK_STORE_URL: undefined,
          OARLOCK_CA_FILE: server.unixSocketUrl ? undefined : join(dataDir, 'pki', 'ca.crt'),
          OARLOCK_TOKEN: issued.credential,
          OARLOCK_TOKEN_TTL: `${Math.floor(issued.ttlMs / 1_000)}s`,
          OARLOCK_LEASE_DURATION: options.workerLeaseMs === undefined ? undefined : formatDuration(options.workerLeaseMs),
        }
      },
    })
    const registry = makeRegistry({ workers: () => pool.running().length })
    const controllers = makeControllers({
      client,
      poolDriver: pool,
      podWorkers: { environment: { OARLOCK_SERVER: url, OARLOCK_STORE_URL: url } },
      checkState: async ({ metadata }, expected) => await checkStoredState(stores.state, metadata.uid, expected),
      readPendingOperations: async ({ uid }) => pendingOperationsOf(await stores.state.facts(uid)),
      removeStackData: ({ uid }) => stores.state.deleteStack(uid),
      allowPaths,
      cacheDir: join(dataDir, 'cache'),
      localUnsavedStates: () => countUnsavedStates(join(dataDir, 'runs')),
      maxRunning: options.maxRunning,
      approvalTimeoutMs: options.approvalTimeoutMs,
      registry,
      log,
    })
    const { manager, dispatch, stacks, runs } = controllers
    api.setRunsOfWorker(controllers.runsOfWorker)
    const served = serveStores(stores, { client, manager, registry, log })
    const handlers = { state: whileClaimed(claim, served.state), log: whileClaimed(claim, served.log) }
    mounts.set('/state/', handlers.state)
    mounts.set('/logs/', handlers.log)
    mounts.set('/queue', createQueueHandler(client, dispatch.queue))

    let isStopping = false
    // Load balancers must stop sending requests as soon as the shutdown begins.
    manager.addReadinessCheck(() => (isStopping ? ['oarlock is shutting down'] : [...claim.notReady(), ...fullDiskReasons(dataDir)]))
    const console = startConsole({
      ...{ manager, controllers, client, version, log, settings: options.console ?? {} },
      connect: connectToOwnServer(server),
      administrator: administratorOf(dataDir),
      ...{ dataDir, registry },
    })
    cleanups.push(() => console.close())
    const listener = await startEndpoints({
      address: healthAddress,
      statusToken: openStatusToken(dataDir),
      controllers,
      registry,
      moreMetrics: () => server.metrics(),
      mounts: [
        { prefix: '/state/', handler: handlers.state },
        { prefix: '/logs/', handler: handlers.log },
      ],
      console: (path, request, response) => console.server.handle(path, request, response),
      adminToken: server.adminToken,
      log,
    })
    cleanups.push(() => listener.close())
    const httpUrl = urlOf('http', listener.address)
    cleanups.push(recordStatusUrl(dataDir, httpUrl))
    const revoker = new CredentialRevoker({ client, workers: controllers.workers, log })
    cleanups.push(() => revoker.stop())
    cleanups.push(() => manager.stop({ graceMs: controllersGraceMs }))
    await manager.start()
    cleanups.push(collectGarbageWhenIdle(() => server.stats().historyBytes))
    log.info({ api: url, http: formatAddress(listener.address), dataDir }, 'oarlock is ready')

    let stopping: Promise<void> | undefined
    return {
      server,
      client,
      stacks,
      runs,
      apiUrl: url,
      httpUrl,
      consoleLink: () => consoleLink(httpUrl, console.issueLink()),
      kubeconfigPath: server.kubeconfigPath,
      copiedFrom,
      interrupt: () => pool.interrupt(),
      stop: ({ graceMs = 30_000, onProgress } = {}) => {
        isStopping = true
        stopping ??= (async () => {
          // Controllers stop first, so that no Run is assigned. The API server runs until the workers have reported.
          revoker.stop()
          const controllersStopped = manager.stop({ graceMs: controllersGraceMs })
          await drainProcessPool(pool, { graceMs, onProgress, log })
          await controllersStopped
          await cleanUp()
        })()
        return stopping
      },
    }
  } catch (error) {
    await cleanUp()
    throw toAppStartError(error, { dataDir, listen: formatAddress(listen) })
  }
}
