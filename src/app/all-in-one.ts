import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'
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
  type WorkerPool,
  workerPoolResource,
  workerResource,
} from '../api/index.ts'
import { renderStatusPage } from '../console/index.ts'
import { addDispatchController } from '../controllers/dispatch/index.ts'
import { addStackController } from '../controllers/stack/index.ts'
import { gitCredentials, resolveRevision, SourceError, validateSource } from '../execution/workspace/index.ts'
import { type Client, createClient, installKinds, namespaceResource, secretResource } from '../kubernetes/client/index.ts'
import { type Informer, type Log, Manager, silentLog } from '../kubernetes/controller/index.ts'
import { type ApiServer, startServer } from '../kubernetes/server/index.ts'
import { createLogHandler, openLogStore } from '../stores/log/index.ts'
import { createStateHandler, openStateStore, type StateStore } from '../stores/state/index.ts'
import { type Address, formatAddress } from './address.ts'
import { type AuthorizerFacts, makeAuthorizer, workerOf, workersGroup, workerUserName } from './authorize.ts'
import { joinedAdmission } from './authorize-joined.ts'
import { HostCapabilities } from './host-capabilities.ts'
import { startHttpListener } from './http-listener.ts'
import { collectGarbageWhenIdle } from './idle-gc.ts'
import { anyLabel, createJoinHandler, createJoinToken, credentialLabels, JoinService, workerCredentialName } from './join/index.ts'
import { readStateKey } from './keys.ts'
import { makeRegistry, recoveredLocks } from './metrics.ts'
import { ProcessPool } from './process-pool.ts'
import { createQueueHandler, queueResponse } from './queue-endpoint.ts'
import { authorizeLog, authorizeState, lockAbandonedCheck, type StoreFacts } from './store-access.ts'
import { toAppStartError } from './to-app-start-error.ts'

export type AllInOneOptions = {
  /** Everything that outlives the process; made when missing. */
  dataDir: string
  /** Of the API, over TLS. Default 127.0.0.1:7466; with port 0 the port of the last time is taken again if it is free. */
  listen?: Address
  /** Of the status page, metrics and health. Default 127.0.0.1:7467. */
  http?: Address
  /** Further names and addresses that workers of other machines reach the API by; the certificate is made for them too. */
  names?: readonly string[]
  /** Directories below which Stacks may name a `source.path` or a file:// repository. Default: none. */
  allowPaths?: readonly string[]
  /** `max`: how many Runs at once. Default: one per core, at least 2. Only for a WorkerPool `default` that does not exist yet, unless given. */
  pool?: { max?: number }
  /** Never more Runs at once, over all pools. Default: no limit. */
  maxRunning?: number
  /** The program and first arguments that start a worker, such as Node and bin/oarlock.js. */
  launcher: readonly string[]
  version: string
  log?: Log
}

export type AllInOne = {
  readonly server: ApiServer
  readonly apiUrl: string
  readonly httpUrl: string
  readonly kubeconfigPath: string
  /** An administrator's connection to the API. */
  readonly client: Client
  readonly stacks: Informer<Pick<Stack, 'spec' | 'status'>>
  readonly runs: Informer<Pick<Run, 'spec' | 'status'>>
  /**
   * Ends in good order: no new Runs, workers finish theirs for `graceMs` (default 30,000), then their engines are interrupted so
   * that they save their state; then everything is closed. Calling `interrupt` shortens the wait.
   */
  stop(options?: { graceMs?: number; onProgress?: (running: number) => void }): Promise<void>
  /** While stopping: interrupt the engines now. */
  interrupt(): void
}

/** A worker's token outlives the longest Run; it opens nothing but what its Worker is assigned (authorize.ts, store-access.ts). */
const workerTokenTtlMs = 30 * 24 * 3_600_000
/** A Pod that has not registered by then is given up before (10 minutes, unless its pool says otherwise). */
const podTokenTtlMs = 60 * 60_000
const controllerTokenTtlMs = 10 * 365 * 24 * 3_600_000
/** After an interrupt: the ladder of the engines (SIGINT, after 60 s SIGTERM, after 10 more SIGKILL) and some time to report. */
const afterInterruptMs = 80_000
const quietMs = 500
const controllersGraceMs = 5_000
const revisionTimeoutMs = 60_000

/**
 * Starts everything in this process: API server, stores, controllers, status page; workers are its child processes.
 * @throws {AppStartError} for what a person can put right: data directory, addresses.
 */
export async function startAllInOne(options: AllInOneOptions): Promise<AllInOne> {
  const { log = silentLog, launcher, version } = options
  const dataDir = resolve(options.dataDir)
  const listen = options.listen ?? { host: '127.0.0.1', port: 7466 }
  const http = options.http ?? { host: '127.0.0.1', port: 7467 }
  const allowPaths = (options.allowPaths ?? []).map(path => resolve(path))
  /** What to undo when the start fails half-way, and at the end: the newest first. */
  const undo: (() => Promise<void> | void)[] = []
  const cleanUp = async () => {
    for (const step of undo.splice(0).reverse()) await step()
  }

  try {
    // Handlers are mounted before what they serve exists: they answer once it does.
    const late: {
      stateHandler?: Mounted
      logHandler?: Mounted
      queueHandler?: ReturnType<typeof createQueueHandler>
      joinHandler?: ReturnType<typeof createJoinHandler>
      peek?: ApiServer['getObject']
      runs?: Informer<Pick<Run, 'spec' | 'status'>>
    } = {}
    const known: AuthorizerFacts = {
      assignedTo: (namespace, name) => late.runs?.get(`${namespace}/${name}`)?.spec.workerName,
      run: (namespace, name) => (name === undefined ? undefined : (late.peek?.(`runs.${apiGroup}`, namespace, name) as Run | undefined)),
      labelsOf: worker => credentialLabels(late.peek?.('secrets', systemNamespace, workerCredentialName(worker))),
      runsOf: worker => late.runs?.byIndex('ofWorker', worker) ?? [],
    }
    const startingServer = startOnPort(listen, join(dataDir, 'kubeconfig'), address =>
      startServer({
        dataDir,
        listen: address,
        log,
        tlsNames: options.names,
        authorize: makeAuthorizer(known),
        admissionPlugins: joinedAdmission(workerOf, known),
        mounts: [
          { prefix: '/state/', handler: (request, response, { user }) => serve(late.stateHandler, request, response, user) },
          { prefix: '/logs/', handler: (request, response, { user }) => serve(late.logHandler, request, response, user) },
          {
            prefix: '/queue',
            handler: async (request, response, { user }) => {
              if (late.queueHandler) await late.queueHandler(request, response, user)
              else response.writeHead(503, { 'Retry-After': '1' }).end()
            },
          },
          { prefix: '/join', handler: (request, response, { user }) => serve(late.joinHandler, request, response, user) },
        ],
      }),
    )
    const openingState = openState(dataDir)
    const [serverStart, stateStart] = await Promise.allSettled([startingServer, openingState])
    if (serverStart.status === 'fulfilled') undo.push(() => serverStart.value.close())
    if (stateStart.status === 'fulfilled') undo.push(() => stateStart.value.close())
    // Where both fail, as on a directory that is in use, the server says it better.
    const server = await startingServer
    late.peek = server.getObject
    const stateStore = await openingState
    const logStore = openLogStore({ directory: join(dataDir, 'logs') })
    undo.push(() => logStore.close())

    const token = server.issueToken({ name: 'oarlock:controllers', groups: ['system:masters'], ttlMs: controllerTokenTtlMs })
    const client = await createClient({
      cluster: { server: server.url, caCertificate: server.caCertificate, token },
      local: server.connect(),
      userAgent: 'oarlock-controllers',
    })
    undo.push(() => client.close())
    await Promise.all([
      installKinds(client, oarlockResources),
      client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true }),
    ])
    await ensurePool(client, options.pool?.max)
    const desk = new JoinService({ client, issueToken: user => server.issueToken(user) })
    late.joinHandler = createJoinHandler({ desk, caCertificate: server.caCertificate })

    const host = new HostCapabilities()
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
        ...host.environment(),
      }),
    })
    const registry = makeRegistry({ workers: () => pool.running().length })
    const locks = recoveredLocks(registry)
    const manager = new Manager({ client, log, registry })
    addStackController(manager, {
      checkSource: stack => validateSource(stack.spec.source),
      resolveRevision: stack => revisionOf(client, stack, { allowPaths, cacheDir: join(dataDir, 'cache') }),
      removeStackData: stackUid => stateStore.deleteStack(stackUid),
    })
    const dispatch = addDispatchController(manager, {
      poolDriver: pool,
      podWorkers: {
        environment: { OARLOCK_SERVER: server.url, OARLOCK_STORE_URL: server.url },
        // Its labels stand in the template of its pool. For one use and one name, and soon over: what stands in a Secret beside the Pod opens nothing once the worker has joined.
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
    runs.onChange({ deleted: run => void forgetLog(run) })

    const facts: StoreFacts = {
      client,
      cachedRun: (namespace, name) => runs.get(`${namespace}/${name}`),
      cachedStack: (namespace, name) => stacks.get(`${namespace}/${name}`),
      checkStackToken: (stackUid, token) => stateStore.checkStackToken(stackUid, token),
    }
    late.queueHandler = createQueueHandler(client, dispatch.queue)
    late.runs = runs
    late.stateHandler = createStateHandler({
      store: stateStore,
      authorize: request => authorizeState(facts, request),
      isLockAbandoned: lockAbandonedCheck(client),
      onError: error => log.error({ err: error }, 'a request to the state store failed'),
      onLockBroken: () => locks.inc(),
    })
    late.logHandler = createLogHandler({ store: logStore, authorize: request => authorizeLog(facts, request) })

    let hasStarted = false
    let isStopping = false
    const readiness = (): string[] => {
      // Whoever asks is to send its work elsewhere from the moment on when nothing new is begun here.
      const reasons = isStopping ? ['oarlock stops'] : manager.readyz().reasons
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
        { prefix: '/state/', handler: (request, response, context) => late.stateHandler!(request, response, context) },
        { prefix: '/logs/', handler: (request, response, context) => late.logHandler!(request, response, context) },
      ],
      adminToken: server.adminToken,
      onError: error => log.error({ err: error }, 'a request to the status page failed'),
    })
    undo.push(() => listener.close())
    undo.push(() => manager.stop({ graceMs: controllersGraceMs }))
    await manager.start()
    undo.push(collectGarbageWhenIdle())
    log.info({ api: server.url, http: formatAddress(listener.address), dataDir }, 'oarlock is up')

    async function forgetLog({ metadata }: { metadata: { namespace?: string; name: string } }): Promise<void> {
      try {
        await logStore.remove({ namespace: metadata.namespace ?? '', run: metadata.name })
      } catch (error) {
        log.warn({ err: error, run: metadata.name }, 'the log of a deleted run could not be removed')
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
          // Controllers first: nothing new is assigned. The API stays until the workers have reported.
          const controllers = manager.stop({ graceMs: controllersGraceMs })
          pool.drain()
          // A worker that has just reported needs a moment to exit; that is nothing to tell.
          if (!(await pool.whenEmpty(Math.min(graceMs, quietMs)))) onProgress?.(pool.running().length)
          if (!(await pool.whenEmpty(Math.max(0, graceMs - quietMs)))) {
            pool.interrupt()
            if (!(await pool.whenEmpty(afterInterruptMs)))
              log.error({ workers: pool.running() }, 'workers are left behind; their leases will end them')
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
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  return await openStateStore({ directory: join(dataDir, 'state'), key: readStateKey(dataDir) })
}

type Mounted = ReturnType<typeof createStateHandler>
type HandlerArguments = Parameters<Mounted>

async function serve(
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

/**
 * With port 0, tries the port of the last time first: workers and kubeconfigs of before a crash then still find us. Any free
 * port will do when it is taken.
 */
async function startOnPort(listen: Address, kubeconfigPath: string, start: (address: Address) => Promise<ApiServer>): Promise<ApiServer> {
  const last = listen.port === 0 ? lastPort(kubeconfigPath) : undefined
  if (last === undefined) return await start(listen)
  try {
    return await start({ ...listen, port: last })
  } catch (error) {
    if ((error as { code?: string }).code !== 'AddressInUse') throw error
    return await start(listen)
  }
}

function lastPort(kubeconfigPath: string): number | undefined {
  if (!existsSync(kubeconfigPath)) return undefined
  const [, port] = /server: "?https:\/\/\S+:(\d+)"?\s/.exec(readFileSync(kubeconfigPath, 'utf8')) ?? []
  return port === undefined ? undefined : Number(port)
}

/** The WorkerPool `default`: made once; afterwards it is the user's, and only a given `max` changes it. */
async function ensurePool(client: Client, max: number | undefined): Promise<void> {
  const pools = client.resource(workerPoolResource)
  const existing = await pools.getOrUndefined('default')
  if (!existing) {
    const spec: WorkerPool['spec'] = { mode: 'Process', max: max ?? Math.max(2, cpus().length) }
    await pools.create({ metadata: { name: 'default' }, spec })
  } else if (max !== undefined && existing.spec.max !== max) {
    await pools.patch('default', { spec: { max } }, { type: 'merge' })
  }
}

/** What a Stack's source is right now; asked again and again, so it may take only so long. */
async function revisionOf(client: Client, stack: Stack, options: { allowPaths: readonly string[]; cacheDir: string }): Promise<string> {
  const { source } = stack.spec
  const { namespace } = stack.metadata
  const signal = AbortSignal.timeout(revisionTimeoutMs)
  const secretName = source.git?.secretRef?.name
  if (secretName === undefined) return await resolveRevision(source, { ...options, signal })
  const secret = await client.resource(secretResource).getOrUndefined(secretName, { namespace })
  if (!secret) throw new SourceError('SourceAuthFailed', 'spec.source.git.secretRef', `Secret ${namespace}/${secretName} does not exist`)
  const credentials = gitCredentials(secret.data ?? {}, `${namespace}/${secretName}`)
  return await resolveRevision(source, { ...options, credentials, signal })
}
