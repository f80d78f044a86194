import { delimiter, join, resolve } from 'node:path'
import {
  apiGroup,
  isEnded,
  oarlockResources,
  type Run,
  runResource,
  type Stack,
  stackResource,
  systemNamespace,
  type Worker,
  workerResource,
} from '../api/index.ts'
import { renderStatusPage } from '../console/index.ts'
import { addDispatchController } from '../controllers/dispatch/index.ts'
import { addStackController } from '../controllers/stack/index.ts'
import { validateSource } from '../execution/workspace/index.ts'
import { type Client, createClient, installKinds, namespaceResource } from '../kubernetes/client/index.ts'
import { type Informer, type Log, Manager, silentLog } from '../kubernetes/controller/index.ts'
import { type ApiServer, startServer } from '../kubernetes/server/index.ts'
import { makeDirectories } from '../kubernetes/util/index.ts'
import { createLogHandler, openLogStore } from '../stores/log/index.ts'
import { createStateHandler, openStateStore, type StateStore } from '../stores/state/index.ts'
import { type Address, formatAddress } from './address.ts'
import { startOnPreviousPort } from './api-port.ts'
import { type AuthorizerFacts, makeAuthorizer, workerOf, workersGroup, workerUserName } from './authorize.ts'
import { joinedAdmission } from './authorize-joined.ts'
import { ensureDefaultPool } from './default-pool.ts'
import { HostCapabilities } from './host-capabilities.ts'
import { startHttpListener } from './http-listener.ts'
import { collectGarbageWhenIdle } from './idle-gc.ts'
import { anyLabel, createJoinHandler, createJoinToken, credentialLabels, JoinService, workerCredentialName } from './join/index.ts'
import { readStateKey } from './keys.ts'
import { brokenLocksCounter, makeRegistry } from './metrics.ts'
import { ProcessPool } from './process-pool.ts'
import { createQueueHandler, queueResponse } from './queue-endpoint.ts'
import { currentRevision } from './source-revision.ts'
import { authorizeLog, authorizeState, lockAbandonedCheck, type StoreFacts } from './store-access.ts'
import { toAppStartError } from './to-app-start-error.ts'

export type AllInOneOptions = {
  /** Holds everything that outlives the process; created if missing. */
  dataDir: string
  /** Address of the API server (TLS). Default 127.0.0.1:7466. Port 0 means the port of the previous process if it is free, else any. */
  listen?: Address
  /** Address of the status page, metrics and health endpoints. Default 127.0.0.1:7467. */
  http?: Address
  /** Additional host names and IP addresses for the TLS certificate, for workers on other machines. */
  names?: readonly string[]
  /** Directories below which Stacks may use `source.path` and file:// repositories. Default: none. */
  allowPaths?: readonly string[]
  /** `max`: maximum size of the WorkerPool `default`. Default: one per core, at least 2, for a new pool; an existing pool is kept. */
  pool?: { max?: number }
  /** Maximum concurrent Runs over all pools. Default: unlimited. */
  maxRunning?: number
  /** Program and leading arguments that start a worker, such as Node and bin/oarlock.js. */
  launcher: readonly string[]
  version: string
  log?: Log
}

export type AllInOne = {
  readonly server: ApiServer
  readonly apiUrl: string
  readonly httpUrl: string
  readonly kubeconfigPath: string
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

/** A worker's token outlives the longest Run. It grants access only to the Runs of its Worker (authorize.ts, store-access.ts). */
const workerTokenTtlMs = 30 * 24 * 3_600_000
/** Longer than dispatch waits for a Pod to register (10 minutes, unless its pool has another limit). */
const podTokenTtlMs = 60 * 60_000
const controllerTokenTtlMs = 10 * 365 * 24 * 3_600_000
/** An interrupted engine gets SIGINT, after 60 s SIGTERM and after 10 more SIGKILL; then its worker reports. */
const interruptTimeoutMs = 80_000
/** Workers that have finished exit within this time, so that they are not reported as running. */
const exitDelayMs = 500
const controllersGraceMs = 5_000

/**
 * Starts API server, stores, controllers and status page in this process. Workers are its child processes.
 * @throws {AppStartError} if the data directory or an address cannot be used.
 */
export async function startAllInOne(options: AllInOneOptions): Promise<AllInOne> {
  const { log = silentLog, launcher, version } = options
  const dataDir = resolve(options.dataDir)
  const listen = options.listen ?? { host: '127.0.0.1', port: 7466 }
  const http = options.http ?? { host: '127.0.0.1', port: 7467 }
  const allowPaths = (options.allowPaths ?? []).map(path => resolve(path))
  /** Run in reverse order when the start fails, and on shutdown. */
  const cleanups: (() => Promise<void> | void)[] = []
  const cleanUp = async () => {
    for (const step of cleanups.splice(0).reverse()) await step()
  }

  try {
    // Handlers are mounted before the parts that they serve have started; until then they respond with 503.
    const parts: {
      stateHandler?: Mounted
      logHandler?: Mounted
      queueHandler?: ReturnType<typeof createQueueHandler>
      joinHandler?: ReturnType<typeof createJoinHandler>
      getObject?: ApiServer['getObject']
      runs?: Informer<Pick<Run, 'spec' | 'status'>>
    } = {}
    const authorizerFacts: AuthorizerFacts = {
      assignedTo: (namespace, name) => parts.runs?.get(`${namespace}/${name}`)?.spec.workerName,
      run: (namespace, name) =>
        name === undefined ? undefined : (parts.getObject?.(`runs.${apiGroup}`, namespace, name) as Run | undefined),
      labelsOf: worker => credentialLabels(parts.getObject?.('secrets', systemNamespace, workerCredentialName(worker))),
      runsOf: worker => parts.runs?.byIndex('ofWorker', worker) ?? [],
    }
    const startingServer = startOnPreviousPort(listen, join(dataDir, 'kubeconfig'), address =>
      startServer({
        dataDir,
        listen: address,
        log,
        tlsNames: options.names,
        authorize: makeAuthorizer(authorizerFacts),
        admissionPlugins: joinedAdmission(workerOf, authorizerFacts),
        mounts: [
          { prefix: '/state/', handler: (request, response, { user }) => serveWhenReady(parts.stateHandler, request, response, user) },
          { prefix: '/logs/', handler: (request, response, { user }) => serveWhenReady(parts.logHandler, request, response, user) },
          {
            prefix: '/queue',
            handler: async (request, response, { user }) => {
              if (parts.queueHandler) await parts.queueHandler(request, response, user)
              else response.writeHead(503, { 'Retry-After': '1' }).end()
            },
          },
          { prefix: '/join', handler: (request, response, { user }) => serveWhenReady(parts.joinHandler, request, response, user) },
        ],
      }),
    )
    const openingState = openState(dataDir)
    const [serverStart, stateStart] = await Promise.allSettled([startingServer, openingState])
    if (serverStart.status === 'fulfilled') cleanups.push(() => serverStart.value.close())
    if (stateStart.status === 'fulfilled') cleanups.push(() => stateStart.value.close())
    // If both fail, for example on a data directory in use, the error of the server is the more helpful one.
    const server = await startingServer
    parts.getObject = server.getObject
    const stateStore = await openingState
    const logStore = openLogStore({ directory: join(dataDir, 'logs') })
    cleanups.push(() => logStore.close())

    const token = server.issueToken({ name: 'oarlock:controllers', groups: ['system:masters'], ttlMs: controllerTokenTtlMs })
    const client = await createClient({
      cluster: { server: server.url, caCertificate: server.caCertificate, token },
      local: server.connect(),
      userAgent: 'oarlock-controllers',
    })
    cleanups.push(() => client.close())
    await Promise.all([
      installKinds(client, oarlockResources),
      client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true }),
    ])
    await ensureDefaultPool(client, options.pool?.max)
    const joinService = new JoinService({ client, issueToken: user => server.issueToken(user) })
    parts.joinHandler = createJoinHandler({ joinService, caCertificate: server.caCertificate })

    const hostCapabilities = new HostCapabilities()
    const pool = new ProcessPool({
      launcher,
      outputDirectory: join(dataDir, 'workers'),
      log,
      environmentOf: workerName => ({
        ...process.env,
        OARLOCK_TOKEN_FILE: undefined,
        OARLOCK_WORKER_NAME: undefined,
        OARLOCK_POOL: undefined,
        OARLOCK_DATA: undefined,
        OARLOCK_SERVER: server.url,
        OARLOCK_CA_FILE: join(dataDir, 'pki', 'ca.crt'),
        OARLOCK_TOKEN: server.issueToken({ name: workerUserName(workerName), groups: [workersGroup], ttlMs: workerTokenTtlMs }),
        OARLOCK_STORE_URL: server.url,
        OARLOCK_RUNS_DIR: join(dataDir, 'runs'),
        OARLOCK_CACHE_DIR: join(dataDir, 'cache'),
        OARLOCK_ALLOW_PATHS: allowPaths.join(delimiter),
        ...hostCapabilities.environment(),
      }),
    })
    const registry = makeRegistry({ workers: () => pool.running().length })
    const locks = brokenLocksCounter(registry)
    const manager = new Manager({ client, log, registry })
    addStackController(manager, {
      checkSource: stack => validateSource(stack.spec.source),
      resolveRevision: stack => currentRevision(client, stack, { allowPaths, cacheDir: join(dataDir, 'cache') }),
      removeStackData: stackUid => stateStore.deleteStack(stackUid),
    })
    const dispatch = addDispatchController(manager, {
      poolDriver: pool,
      podWorkers: {
        environment: { OARLOCK_SERVER: server.url, OARLOCK_STORE_URL: server.url },
        // The token is in a Secret of the Pod, so it is valid for one use, one name and an hour: once the worker has joined it is useless.
        // It allows any label, because the template of the pool sets them.
        credentialOf: async ({ metadata }, worker) =>
          (
            await createJoinToken(client, server.caCertificate, {
              pool: metadata.name,
              worker,
              uses: 1,
              ttlMs: podTokenTtlMs,
              allowLabels: [anyLabel],
            })
          ).text,
      },
      maxRunning: options.maxRunning,
      registry,
      log,
    })
    const stacks = manager.informer(stackResource)
    const runs = manager.informer(runResource, {
      indexes: { ofWorker: ({ spec, status }) => (spec.workerName && !isEnded({ status }) ? [spec.workerName] : []) },
    })
    const workers = manager.informer(workerResource)
    runs.onChange({ deleted: run => void removeLog(run) })

    const facts: StoreFacts = {
      client,
      cachedRun: (namespace, name) => runs.get(`${namespace}/${name}`),
      cachedStack: (namespace, name) => stacks.get(`${namespace}/${name}`),
      checkStackToken: (stackUid, token) => stateStore.checkStackToken(stackUid, token),
    }
    parts.queueHandler = createQueueHandler(client, dispatch.queue)
    parts.runs = runs
    parts.stateHandler = createStateHandler({
      store: stateStore,
      authorize: request => authorizeState(facts, request),
      isLockAbandoned: lockAbandonedCheck(client),
      onError: error => log.error({ err: error }, 'request to the state store failed'),
      onLockBroken: () => locks.inc(),
    })
    parts.logHandler = createLogHandler({ store: logStore, authorize: request => authorizeLog(facts, request) })

    let hasStarted = false
    let isStopping = false
    const readiness = (): string[] => {
      // Load balancers must stop sending requests as soon as the shutdown begins.
      const reasons = isStopping ? ['oarlock is shutting down'] : manager.readyz().reasons
      hasStarted ||= reasons.length === 0
      return reasons
    }
    const listener = await startHttpListener({
      address: http,
      healthz: () => manager.healthz().reasons,
      readyz: () => readiness(),
      startupz: () => (hasStarted ? [] : readiness()),
      metrics: async () => ({ contentType: registry.contentType, text: (await registry.metrics()) + (await server.metrics()) }),
      page: () =>
        renderStatusPage({
          stacks: stacks.list(),
          runs: runs.list(),
          workers: workers.list() as Worker[],
          version,
          apiUrl: server.url,
          nowMs: Date.now(),
        }),
      queue: url => queueResponse(url, dispatch.queue),
      mounts: [
        { prefix: '/state/', handler: (request, response, context) => parts.stateHandler!(request, response, context) },
        { prefix: '/logs/', handler: (request, response, context) => parts.logHandler!(request, response, context) },
      ],
      adminToken: server.adminToken,
      onError: error => log.error({ err: error }, 'request to the status page failed'),
    })
    cleanups.push(() => listener.close())
    cleanups.push(() => manager.stop({ graceMs: controllersGraceMs }))
    await manager.start()
    cleanups.push(collectGarbageWhenIdle())
    log.info({ api: server.url, http: formatAddress(listener.address), dataDir }, 'oarlock is ready')

    async function removeLog({ metadata }: { metadata: { namespace?: string; name: string } }): Promise<void> {
      try {
        await logStore.remove({ namespace: metadata.namespace ?? '', run: metadata.name })
      } catch (error) {
        log.warn({ err: error, run: metadata.name }, 'failed to remove the log of a deleted Run')
      }
    }

    let stopping: Promise<void> | undefined
    return {
      server,
      client,
      stacks,
      runs,
      apiUrl: server.url,
      httpUrl: `http://${formatAddress(listener.address)}`,
      kubeconfigPath: server.kubeconfigPath,
      interrupt: () => pool.interrupt(),
      stop: ({ graceMs = 30_000, onProgress } = {}) => {
        isStopping = true
        stopping ??= (async () => {
          // Controllers stop first, so that no Run is assigned. The API server runs until the workers have reported.
          const controllers = manager.stop({ graceMs: controllersGraceMs })
          pool.drain()
          if (!(await pool.whenEmpty(Math.min(graceMs, exitDelayMs)))) onProgress?.(pool.running().length)
          if (!(await pool.whenEmpty(Math.max(0, graceMs - exitDelayMs)))) {
            pool.interrupt()
            if (!(await pool.whenEmpty(interruptTimeoutMs)))
              log.error({ workers: pool.running() }, 'workers did not exit in time; they end when their Leases expire')
          }
          await controllers
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

async function openState(dataDir: string): Promise<StateStore> {
  makeDirectories(dataDir, 0o700)
  return await openStateStore({ directory: join(dataDir, 'state'), key: readStateKey(dataDir) })
}

type Mounted = ReturnType<typeof createStateHandler>
type HandlerArguments = Parameters<Mounted>

/** Responds with 503 as long as there is no handler. */
async function serveWhenReady(
  handler: Mounted | undefined,
  request: HandlerArguments[0],
  response: HandlerArguments[1],
  user: { name: string; groups: readonly string[] } | undefined,
): Promise<void> {
  if (!handler) {
    response.writeHead(503, { 'Retry-After': '1' }).end()
    return
  }
  await handler(request, response, { user: user && { name: user.name, groups: [...user.groups] } })
}
