import { defaults, type WorkerPool, workerPoolResource } from '../api/index.ts'
import {
  runWorker,
  type WorkerHealth,
  WorkerOptionError,
  type WorkerOverrides,
  type WorkerSettings,
  workerExitCodes,
  workerOptionsFromEnv,
  workerSignals,
} from '../execution/worker/index.ts'
import { type Client, ConnectionError, createClient, skipRootCertificates } from '../kubernetes/client/index.ts'
import { isReason, parseDuration, parseQuantity, quantityValue, StatusError } from '../kubernetes/object/index.ts'
import { looksLikeJoinToken } from './join/join-token.ts'

export type WorkerProcessOptions = WorkerOverrides & {
  env: Readonly<Record<string, string | undefined>>
  version: string
  /** Gets one line of JSON per event, and what keeps the worker from starting. */
  print(line: string): void
}

/** How the worker gets in: what it is called there, and a credential that may change. */
type WorkerAccess = Pick<WorkerSettings, 'name' | 'pool' | 'caCertificate' | 'capabilities'> & {
  token: string | (() => string)
  close(): void
}

/** The worker's process: reads its environment, takes Runs until it is done or a signal says so. Returns the exit code. */
export async function runWorkerProcess(options: WorkerProcessOptions): Promise<number> {
  const { env, version, print, ...overrides } = options
  const { signal, interruptSignal, dispose } = workerSignals()
  const line = (level: string) => (fields: object, message: string) =>
    print(JSON.stringify({ time: new Date().toISOString(), level, ...fields, message }))
  const log = { info: line('info'), warn: line('warn') }
  try {
    const settings = workerOptionsFromEnv(env, overrides)
    const access = looksLikeJoinToken(settings.token)
      ? await joinPool(settings, overrides.name ?? env.OARLOCK_WORKER_NAME, log)
      : accessFromSettings(settings)
    const { server } = settings
    const { caCertificate, token } = access
    if (caCertificate !== undefined) skipRootCertificates()
    // A worker asks for little at a time; each connection more is a TLS handshake before its first Run.
    const client = await createClient({
      cluster: { server, caCertificate, token },
      userAgent: 'oarlock-worker',
      fieldManager: 'oarlock',
      connections: 2,
    })
    let health = (): WorkerHealth => ({ live: [], ready: notRegistered, started: notRegistered })
    let endpoint: { close(): void } | undefined
    try {
      if (settings.health !== undefined) endpoint = await serveHealth(settings.health, () => health())
      const way = await lifecycleSettings(client, settings, access.pool)
      const onHealth = (now: () => WorkerHealth) => {
        health = now
      }
      const { exitCode } = await runWorker({ ...settings, ...access, ...way, client, version, log, signal, interruptSignal, onHealth })
      return exitCode
    } finally {
      endpoint?.close()
      access.close()
      await client.close()
    }
  } catch (error) {
    const exitCode = exitCodeOf(error)
    if (exitCode === undefined) throw error
    print(`oarlock worker: ${(error as Error).message}`)
    return exitCode
  } finally {
    dispose()
  }
}

/** Undefined for what nobody foresaw. */
function exitCodeOf(error: unknown): number | undefined {
  if (error instanceof WorkerOptionError) return workerExitCodes.invalidSetting
  const isRefused = isReason(error, 'Unauthorized', 'Forbidden') || (error as { isRefused?: unknown }).isRefused === true
  if (isRefused) return workerExitCodes.accessDenied
  const isUnreached = error instanceof StatusError || error instanceof ConnectionError || (error as Error).name === 'JoinError'
  return isUnreached ? workerExitCodes.notRegistered : undefined
}

const accessFromSettings = ({ name, pool, caCertificate, token, capabilities }: WorkerSettings): WorkerAccess => ({
  capabilities,
  name,
  pool,
  caCertificate,
  token,
  close: () => undefined,
})

/** Exchanges a join token for a credential of its own, and keeps that fresh. */
async function joinPool(
  { server, token: text, pool, capabilities }: WorkerSettings,
  wanted: string | undefined,
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void },
): Promise<WorkerAccess> {
  // Loaded only here: a worker that this process's own server starts has its credential already.
  const { bootstrapWorker, Credential, fetchPinnedCa, parseJoinToken } = await import('./join/index.ts')
  const token = parseJoinToken(text)
  if (!token) throw new WorkerOptionError('the join token is not whole: it has four parts, as "oarlock token create" printed it')
  if (!server.startsWith('https://')) throw new WorkerOptionError(`the server ${server} must be an https:// URL to be joined with a token`)
  const caCertificate = await fetchPinnedCa(server, token)
  const admission = await bootstrapWorker(server, caCertificate, text, { name: wanted, labels: capabilities.labels })
  log.info({ worker: admission.worker, pool: admission.pool, server }, 'joined')
  if (pool !== defaults.pool && pool !== admission.pool)
    log.warn({ pool }, `the join token is for pool ${admission.pool}, whatever --pool says`)
  const onError = (error: Error) => log.warn({ worker: admission.worker, error: error.message }, 'the credential could not be renewed')
  const credential = new Credential({ server, caCertificate, admission, onError })
  const { worker: name, labels } = admission
  return {
    name,
    pool: admission.pool,
    caCertificate,
    token: credential.get,
    capabilities: { ...capabilities, labels },
    close: () => credential.stop(),
  }
}

const notRegistered = ['the worker has not registered yet']

async function serveHealth(text: string, health: () => WorkerHealth): Promise<{ close(): void }> {
  // Loaded only for who asks for it.
  const [{ parseAddress }, { startWorkerHealth }] = await Promise.all([import('./address.ts'), import('./worker-health.ts')])
  try {
    return await startWorkerHealth(parseAddress(text), health)
  } catch (error) {
    throw new WorkerOptionError(`--health: ${(error as Error).message}`)
  }
}

type LifecycleSettings = {
  once: boolean
  slots: number
  drainGraceMs: number
  recycle: { afterRuns?: number; aboveMemoryBytes?: number }
  engineEnvironment: readonly string[]
}

/** How the worker lives: as its driver or its command line says, else as its pool does, else warm with one slot. */
async function lifecycleSettings(client: Client, settings: WorkerSettings, pool: string): Promise<LifecycleSettings> {
  const { lifecycle, slots, drainGraceMs, recycleAfterRuns, recycleAboveBytes, engineEnvironment } = settings
  // Who started it for a pool has said it all: no question before a one-shot worker's Run.
  const isTold = lifecycle !== undefined && engineEnvironment !== undefined && (slots !== undefined || lifecycle === 'OneShot')
  const spec: WorkerPool['spec'] | undefined = isTold ? undefined : (await client.resource(workerPoolResource).getOrUndefined(pool))?.spec
  const afterRuns = recycleAfterRuns ?? spec?.recycle?.afterRuns
  const aboveMemory = spec?.recycle?.aboveMemory
  const aboveMemoryBytes = recycleAboveBytes ?? (aboveMemory === undefined ? undefined : quantityValue(parseQuantity(aboveMemory)))
  return {
    once: (lifecycle ?? (spec ? (spec.lifecycle ?? 'OneShot') : 'Warm')) === 'OneShot',
    slots: slots ?? spec?.slots ?? 1,
    drainGraceMs: drainGraceMs ?? parseDuration(spec?.drainGrace ?? defaults.drainGrace),
    engineEnvironment: engineEnvironment ?? spec?.engineEnvironment ?? [],
    recycle: { ...(afterRuns !== undefined && { afterRuns }), ...(aboveMemoryBytes !== undefined && { aboveMemoryBytes }) },
  }
}
