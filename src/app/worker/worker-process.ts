/**
 * @module app/worker: the process of one worker. Start reading here.
 * In: environment and command line. Out: a worker that has joined, its credential and its health endpoints (`worker-health.ts`), and an exit code.
 * Out of scope: leases and Runs (`execution/worker/`), how it joins (`../join/`).
 */
import { defaults, mergePolicies, poolPolicy, type RunPolicy, type WorkerPool, workerPoolResource } from '../../api/index.ts'
import {
  type PodSettings,
  prepareWorkerDirectories,
  runWorker,
  SupervisorUnavailableError,
  type WorkerHealth,
  WorkerOptionError,
  type WorkerOverrides,
  type WorkerSettings,
  workerExitCodes,
  workerOptionsFromEnv,
  workerSignals,
} from '../../execution/worker/index.ts'
import { type Client, ConnectionError, createClient, disableBundledRootCertificates } from '../../kubernetes/client/index.ts'
import { isReason, parseDuration, parseQuantity, quantityValue, StatusError } from '../../kubernetes/object/index.ts'
import { areInDifferentPartitions } from '../../kubernetes/util/index.ts'
import { Credential } from '../join/credential.ts'
import { looksLikeJoinToken } from '../join/looks-like-join-token.ts'
import { describeFatalError, fatalExitCode, handleFatalErrors } from './fatal-error.ts'
import type { PartitionAccess } from './partition-access.ts'

export type WorkerProcessOptions = WorkerOverrides & {
  env: Readonly<Record<string, string | undefined>>
  version: string
  /** Prints one line: a log entry as JSON, or the error that keeps the worker from starting. */
  print(line: string): void
}

/** The worker's identity on the server, and its credential, which may be renewed. */
type WorkerAccess = Pick<
  WorkerSettings,
  'name' | 'pool' | 'server' | 'caCertificate' | 'storeUrl' | 'storeCaCertificate' | 'capabilities'
> & {
  token: string | (() => string)
  close(): void
}

/** Runs a worker with the settings of its environment until it has finished or a signal ends it. Returns the exit code. */
export async function runWorkerProcess(options: WorkerProcessOptions): Promise<number> {
  const { env, version, print, ...overrides } = options
  // Its handlers remain: the garbage collector may delete the Pod of a worker that has deregistered, and SIGTERM must not change its exit code.
  const { signal, interruptSignal } = workerSignals()
  const stopHandling = handleFatalErrors(print)
  // JSON lines like the server's log. Not pino, whose loading delays the first Run, and not `consoleLog`, which writes text.
  const line = (level: string) => (fields: object, message: string) =>
    print(JSON.stringify({ time: new Date().toISOString(), level, ...fields, message }))
  const log = { info: line('info'), warn: line('warn') }
  try {
    const settings = workerOptionsFromEnv(env, overrides)
    prepareWorkerDirectories(settings)
    const access = settings.pod
      ? await podAccess(settings, settings.pod)
      : looksLikeJoinToken(settings.token)
        ? await joinPool(settings, overrides.name ?? env.OARLOCK_WORKER_NAME, log)
        : accessFromSettings(settings, log)
    const { server, caCertificate, token } = access
    if (caCertificate !== undefined && access.storeCaCertificate !== undefined) disableBundledRootCertificates()
    // A worker has few concurrent requests, and each further connection costs a TLS handshake before its first Run.
    const client = await createClient({
      cluster: { server, caCertificate, token },
      userAgent: 'oarlock-worker',
      fieldManager: 'oarlock',
      connections: 2,
    })
    let health = (): WorkerHealth => ({ live: [], ready: notRegistered, started: notRegistered })
    let endpoint: { close(): void } | undefined
    let partitions: PartitionAccess | undefined
    try {
      if (settings.healthAddress !== undefined) endpoint = await serveHealth(settings.healthAddress, () => health())
      const lifecycle = await lifecycleSettings(client, settings, access.pool)
      // Afterwards: what this loads would delay the first request.
      const shared = await partitionSettings(client, settings)
      const openPartitions = async () => {
        const { PartitionAccess } = await import('./partition-access.ts')
        partitions ??= new PartitionAccess({ client, token, caCertificate, log, partitions: shared?.partitions ?? [] })
        return partitions
      }
      if (shared && !lifecycle.once) (await openPartitions()).warmUp()
      const onHealth = (now: () => WorkerHealth) => {
        health = now
      }
      const { exitCode } = await runWorker({
        ...settings,
        ...access,
        ...lifecycle,
        runSelections: shared?.runSelections ?? [{ namespace: settings.runNamespace }],
        async openRunAccess(run, workerVersion) {
          // All that a worker of a single server does for partitions.
          if (!partitions && !areInDifferentPartitions(run.metadata.resourceVersion, workerVersion)) return undefined
          return await (await openPartitions()).open(run, workerVersion)
        },
        podUid: settings.pod?.uid,
        isDeregisteredByController: settings.pod?.isDeregisteredByController,
        client,
        version,
        log,
        signal,
        interruptSignal,
        onHealth,
      })
      return exitCode
    } finally {
      endpoint?.close()
      access.close()
      await partitions?.close()
      await client.close()
    }
  } catch (error) {
    const exitCode = exitCodeOf(error)
    print(exitCode === undefined ? describeFatalError(error) : `oarlock worker: ${(error as Error).message}`)
    return exitCode ?? fatalExitCode(error)
  } finally {
    stopHandling()
  }
}

/** Undefined for an unexpected error. */
function exitCodeOf(error: unknown): number | undefined {
  if (error instanceof WorkerOptionError) return workerExitCodes.invalidSetting
  if (error instanceof SupervisorUnavailableError) return workerExitCodes.supervisorUnavailable
  const isRejected = isReason(error, 'Unauthorized', 'Forbidden') || (error as { isRejected?: unknown }).isRejected === true
  if (isRejected) return workerExitCodes.accessDenied
  const isUnreachable =
    error instanceof StatusError || error instanceof ConnectionError || ['JoinError', 'StoresNotFoundError'].includes((error as Error).name)
  return isUnreachable ? workerExitCodes.notRegistered : undefined
}

/** A worker Pod: the kubelet renews its token, and the stores may be elsewhere than the API server. */
async function podAccess(settings: WorkerSettings, { tokenFile, findsStores }: PodSettings): Promise<WorkerAccess> {
  const { PodToken, findStores } = await import('./pod-access.ts')
  const token = new PodToken(tokenFile, settings.token)
  const access = { ...settings, token: token.get, close: () => undefined }
  if (!findsStores) return access
  const { url, caCertificate } = await findStores(settings)
  return { ...access, storeUrl: url, storeCaCertificate: caCertificate }
}

/** A worker that `oarlock up` starts renews its credential; another token, which a user gives it, is kept. */
function accessFromSettings(settings: WorkerSettings, log: { warn(fields: object, message: string): void }): WorkerAccess {
  const { server, caCertificate, token, tokenTtlMs, name } = settings
  if (tokenTtlMs === undefined) return { ...settings, close: () => undefined }
  const onError = (error: Error) => log.warn({ worker: name, error: error.message }, 'failed to renew the credential')
  const credential = new Credential({ server, caCertificate, response: { credential: token, ttlMs: tokenTtlMs }, onError })
  return { ...settings, token: credential.get, close: () => credential.stop() }
}

/** Exchanges the join token for a credential, which is renewed until `close` is called. */
async function joinPool(
  { server, token: text, pool, capabilities, storeUrl, storeCaCertificate }: WorkerSettings,
  requestedName: string | undefined,
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void },
): Promise<WorkerAccess> {
  // Loaded only here: a worker that `oarlock up` starts already has a credential.
  const { bootstrapWorker, fetchPinnedCa, parseJoinToken } = await import('../join/index.ts')
  const token = parseJoinToken(text)
  if (!token) throw new WorkerOptionError('join token is incomplete: use the whole token as "oarlock token create" printed it')
  if (!server.startsWith('https://')) throw new WorkerOptionError(`server URL ${server} must start with https:// to join with a token`)
  const caCertificate = await fetchPinnedCa(server, token)
  const response = await bootstrapWorker(server, caCertificate, text, { name: requestedName, labels: capabilities.labels })
  log.info({ worker: response.worker, pool: response.pool, server }, 'joined')
  if (pool !== defaults.pool && pool !== response.pool) log.warn({ pool }, `ignored --pool: the join token is for pool ${response.pool}`)
  const onError = (error: Error) => log.warn({ worker: response.worker, error: error.message }, 'failed to renew the credential')
  const credential = new Credential({ server, caCertificate, response, onError })
  const { worker: name, labels } = response
  // The join service names the address of the API server and of the stores if they are not its own.
  const api = response.server ?? { url: server, caCertificate }
  const stores = response.stores ?? {
    url: storeUrl === server ? api.url : storeUrl,
    caCertificate: storeCaCertificate ?? api.caCertificate,
  }
  return {
    name,
    pool: response.pool,
    server: api.url,
    caCertificate: api.caCertificate,
    storeUrl: stores.url,
    storeCaCertificate: stores.caCertificate,
    token: credential.get,
    capabilities: { ...capabilities, labels },
    close: () => credential.stop(),
  }
}

const notRegistered = ['the worker has not registered yet']

async function serveHealth(text: string, health: () => WorkerHealth): Promise<{ close(): void }> {
  // Loaded only if it is used.
  const [{ parseAddress }, { startWorkerHealth }] = await Promise.all([import('../address.ts'), import('./worker-health.ts')])
  try {
    return await startWorkerHealth(parseAddress(text), health)
  } catch (error) {
    throw new WorkerOptionError(`--health-address: ${(error as Error).message}`)
  }
}

type LifecycleSettings = {
  once: boolean
  slots: number
  drainGraceMs: number
  recycle: { afterRuns?: number; aboveMemoryBytes?: number }
  engineEnvironment: readonly string[]
  policy: RunPolicy
}

/** What a worker of a gateway needs to know of the partitions. Undefined: its driver has started it for one server, or there are none. */
async function partitionSettings(client: Client, { hasPoolSettings, runNamespace }: WorkerSettings) {
  if (hasPoolSettings || runNamespace !== undefined) return undefined
  const { partitionRuns, readPartitions } = await import('./partition-access.ts')
  const partitions = await readPartitions(client)
  return partitions.length > 0 ? { partitions, runSelections: partitionRuns } : undefined
}

/** From the driver or the command line, else from the pool. A worker that a user starts is Warm with one slot by default: nothing starts it again after a Run. */
async function lifecycleSettings(client: Client, settings: WorkerSettings, pool: string): Promise<LifecycleSettings> {
  const { hasPoolSettings, lifecycle, slots, drainGraceMs, recycleAfterRuns, recycleAboveBytes, engineEnvironment, policy } = settings
  // A driver passes all settings of a worker, which then needs no request before its Run.
  const spec: WorkerPool['spec'] | undefined = hasPoolSettings
    ? undefined
    : (await client.resource(workerPoolResource).getOrUndefined(pool))?.spec
  const afterRuns = recycleAfterRuns ?? spec?.recycle?.afterRuns
  const aboveMemory = spec?.recycle?.aboveMemory
  const aboveMemoryBytes = recycleAboveBytes ?? (aboveMemory === undefined ? undefined : quantityValue(parseQuantity(aboveMemory)))
  return {
    once: (lifecycle ?? spec?.lifecycle ?? 'Warm') === 'OneShot',
    slots: slots ?? spec?.slots ?? 1,
    drainGraceMs: drainGraceMs ?? parseDuration(spec?.drainGrace ?? defaults.drainGrace),
    engineEnvironment: engineEnvironment ?? spec?.engineEnvironment ?? [],
    // Both count: neither lowers what the other requires.
    policy: mergePolicies(spec ? [policy, poolPolicy(spec)] : [policy]),
    recycle: { ...(afterRuns !== undefined && { afterRuns }), ...(aboveMemoryBytes !== undefined && { aboveMemoryBytes }) },
  }
}
