import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { delimiter, join } from 'node:path'
import { defaults, type RunPolicy } from '../../api/index.ts'
import { formatDuration, nameErrors, parseDuration, parseQuantity, quantityValue } from '../../kubernetes/object/index.ts'
import { isUnixUrl, parseServerAddress } from '../../kubernetes/util/index.ts'
import { parseEngineEnvironment } from './engine-environment.ts'
import { type LeaseTimings, leaseTimingsOf } from './lease/lease-timings.ts'
import { sandboxBindsError } from './sandbox-binds.ts'
import { capabilitiesFromEnv, type WorkerCapabilities } from './worker-capabilities.ts'
import { defaultWorkerDirectory } from './worker-directories.ts'
import { WorkerOptionError } from './worker-option-error.ts'
import { policyFromEnv } from './worker-policy.ts'

/** The configuration of a worker process. Client, log and signals come from its caller. */
export type WorkerSettings = {
  name: string
  pool: string
  /** The other settings contain those of the pool, which need not be read. */
  hasPoolSettings: boolean
  /** Undefined: the pool's. */
  lifecycle: 'OneShot' | 'Warm' | undefined
  slots: number | undefined
  capabilities: WorkerCapabilities
  /** The uid of the Worker that requested this process; undefined: none did. */
  workerUid: string | undefined
  /** The Pod of this process, if a controller created it; undefined: it did not. */
  pod: PodSettings | undefined
  /** The worker reads Runs of this namespace only; undefined: of all. */
  runNamespace: string | undefined
  /** The worker exits after this long without a Run; undefined: never. */
  idleTimeoutMs: number | undefined
  recycleAfterRuns: number | undefined
  recycleAboveBytes: number | undefined
  /** HOST:PORT of the health endpoints; undefined: none. */
  healthAddress: string | undefined
  /** `https://host:port` or `unix:///path` of the API server. */
  server: string
  caCertificate: string | undefined
  token: string
  /** The remaining lifetime of the token, which the worker renews; undefined: it does not. */
  tokenTtlMs: number | undefined
  /** Base URL of the state and log stores. Default: the API server. */
  storeUrl: string
  /** PEM of the certificate authority of the stores. Default: that of the API server. */
  storeCaCertificate: string | undefined
  runsDir: string
  cacheDir: string
  gitCacheBytes: number | undefined
  providerCacheBytes: number | undefined
  dependencyCacheBytes: number | undefined
  allowPaths: string[]
  /** Absolute paths that sandboxed engines may read besides the system's programs. */
  sandboxBinds: string[]
  /** Variables of the worker's own environment that engines get; undefined: the pool's setting. */
  engineEnvironment: string[] | undefined
  /** What the worker requires of its Runs, besides its pool and their Tenants. */
  policy: RunPolicy
  /** Grace period of a drain; undefined: the pool's. */
  drainGraceMs: number | undefined
  /** The timings of the Lease. */
  lease: LeaseTimings
}

/** Of a worker Pod, whose ServiceAccount token is its credential. */
export type PodSettings = {
  readonly uid: string
  /** The kubelet replaces its content before the token expires. */
  readonly tokenFile: string
  /** The controller deletes the Worker when the Pod has succeeded. */
  readonly isDeregisteredByController: boolean
  /** The stores are where they have published their address, and not at {@link WorkerSettings.storeUrl}. */
  readonly findsStores: boolean
}

/** Command-line options; they override the environment. */
export type WorkerOverrides = {
  name?: string
  pool?: string
  once?: boolean
  slots?: number
  label?: string[]
  idleTimeout?: string
  server?: string
  token?: string
  tokenFile?: string
  healthAddress?: string
}

/**
 * Reads the environment of a worker: OARLOCK_SERVER, OARLOCK_CA_FILE, OARLOCK_TOKEN or OARLOCK_TOKEN_FILE, OARLOCK_TOKEN_TTL and OARLOCK_LEASE_DURATION (set by `oarlock up`), OARLOCK_STORE_URL,
 * OARLOCK_STORE_CA_FILE, OARLOCK_DEREGISTERED_BY (`Controller`) and OARLOCK_POD_UID (set by the controller; then OARLOCK_SERVER is by default that of the cluster), OARLOCK_RUN_NAMESPACE, OARLOCK_WORKER_NAME, OARLOCK_WORKER_UID (set by `oarlock pool`), OARLOCK_POOL, OARLOCK_POOL_SETTINGS (`complete`, set by drivers), OARLOCK_LIFECYCLE, OARLOCK_SLOTS,
 * OARLOCK_HEALTH_ADDRESS (HOST:PORT), OARLOCK_RUNS_DIR, OARLOCK_CACHE_DIR, OARLOCK_GIT_CACHE_SIZE, OARLOCK_PROVIDER_CACHE_SIZE and OARLOCK_DEPENDENCY_CACHE_SIZE (such as `10Gi`),
 * OARLOCK_ALLOW_PATHS and OARLOCK_SANDBOX_BINDS (separated as in PATH), OARLOCK_ENGINE_ENVIRONMENT (separated by commas), {@link policyFromEnv},
 * OARLOCK_DRAIN_GRACE and OARLOCK_IDLE_TIMEOUT (such as `10m`), OARLOCK_RECYCLE_AFTER_RUNS, OARLOCK_RECYCLE_ABOVE_MEMORY (such as
 * `512Mi`), and those of {@link capabilitiesFromEnv}.
 * @throws {WorkerOptionError} naming the variable, its value and what is allowed.
 */
export function workerOptionsFromEnv(env: Readonly<Record<string, string | undefined>>, overrides: WorkerOverrides = {}): WorkerSettings {
  const server =
    overrides.server ??
    clusterServer(env) ??
    requireVariable(env, 'OARLOCK_SERVER', 'the address of the API server, such as https://127.0.0.1:7466; or use --server')
  const name = overrides.name ?? env.OARLOCK_WORKER_NAME ?? defaultName()
  const [error] = nameErrors(name, 'dns1123Subdomain')
  if (error) throw new WorkerOptionError(`--name ${JSON.stringify(name)}: ${error}`)
  const base = defaultWorkerDirectory()
  const caCertificate = readOptional('OARLOCK_CA_FILE', env.OARLOCK_CA_FILE)
  const runsDir = env.OARLOCK_RUNS_DIR || join(base, 'runs')
  const cacheDir = env.OARLOCK_CACHE_DIR || join(base, 'cache')
  const bindsError = sandboxBindsError(env, { OARLOCK_RUNS_DIR: runsDir, OARLOCK_CACHE_DIR: cacheDir })
  if (bindsError !== undefined) throw new WorkerOptionError(bindsError)
  return {
    name,
    pool: overrides.pool ?? env.OARLOCK_POOL ?? defaults.pool,
    hasPoolSettings: env.OARLOCK_POOL_SETTINGS === 'complete',
    lifecycle: overrides.once ? 'OneShot' : parseLifecycle(env.OARLOCK_LIFECYCLE),
    capabilities: capabilitiesFromEnv(env, overrides.label),
    workerUid: env.OARLOCK_WORKER_UID || undefined,
    pod: podSettings(env),
    runNamespace: env.OARLOCK_RUN_NAMESPACE || undefined,
    slots: overrides.slots ?? parseCount('OARLOCK_SLOTS', env.OARLOCK_SLOTS, 64),
    idleTimeoutMs: parseOptionalDuration('OARLOCK_IDLE_TIMEOUT', overrides.idleTimeout ?? env.OARLOCK_IDLE_TIMEOUT),
    recycleAfterRuns: parseCount('OARLOCK_RECYCLE_AFTER_RUNS', env.OARLOCK_RECYCLE_AFTER_RUNS, 1_000_000),
    recycleAboveBytes: parseBytes('OARLOCK_RECYCLE_ABOVE_MEMORY', env.OARLOCK_RECYCLE_ABOVE_MEMORY),
    server: parseUrl('OARLOCK_SERVER', server),
    caCertificate,
    token: token(env, overrides),
    tokenTtlMs: parseOptionalDuration('OARLOCK_TOKEN_TTL', env.OARLOCK_TOKEN_TTL),
    healthAddress: overrides.healthAddress ?? (env.OARLOCK_HEALTH_ADDRESS || undefined),
    storeUrl: parseUrl('OARLOCK_STORE_URL', env.OARLOCK_STORE_URL || server),
    storeCaCertificate: readOptional('OARLOCK_STORE_CA_FILE', env.OARLOCK_STORE_CA_FILE) ?? caCertificate,
    runsDir,
    cacheDir,
    gitCacheBytes: parseBytes('OARLOCK_GIT_CACHE_SIZE', env.OARLOCK_GIT_CACHE_SIZE),
    ...cacheSizes(env),
    allowPaths: pathList(env, 'OARLOCK_ALLOW_PATHS'),
    sandboxBinds: pathList(env, 'OARLOCK_SANDBOX_BINDS'),
    engineEnvironment: env.OARLOCK_ENGINE_ENVIRONMENT === undefined ? undefined : parseEngineEnvironment(env.OARLOCK_ENGINE_ENVIRONMENT),
    policy: policyFromEnv(env),
    drainGraceMs: parseOptionalDuration('OARLOCK_DRAIN_GRACE', env.OARLOCK_DRAIN_GRACE),
    lease: leaseTimingsOf(parseLeaseDuration('OARLOCK_LEASE_DURATION', env.OARLOCK_LEASE_DURATION)),
  }
}

function podSettings(env: Readonly<Record<string, string | undefined>>): PodSettings | undefined {
  const { OARLOCK_POD_UID: uid, OARLOCK_TOKEN_FILE: tokenFile, OARLOCK_SERVER: server, OARLOCK_STORE_URL: storeUrl } = env
  if (!uid) return undefined
  if (!tokenFile)
    throw new WorkerOptionError('OARLOCK_TOKEN_FILE is not set; with OARLOCK_POD_UID it must be the file of the token of the Pod')
  const isDeregisteredByController = env.OARLOCK_DEREGISTERED_BY === 'Controller'
  return { uid, tokenFile, isDeregisteredByController, findsStores: !server && !storeUrl }
}

/** The API server of the cluster that the Pod runs in, if no other is named. The kubelet sets these variables. */
function clusterServer(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const { OARLOCK_POD_UID: uid, OARLOCK_SERVER: server, KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = env
  if (!uid || server || !host) return undefined
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Also of `oarlock cache warm`, which evicts what is beyond them. */
export function cacheSizes(env: Readonly<Record<string, string | undefined>>): {
  providerCacheBytes: number | undefined
  dependencyCacheBytes: number | undefined
} {
  return {
    providerCacheBytes: parseBytes('OARLOCK_PROVIDER_CACHE_SIZE', env.OARLOCK_PROVIDER_CACHE_SIZE),
    dependencyCacheBytes: parseBytes('OARLOCK_DEPENDENCY_CACHE_SIZE', env.OARLOCK_DEPENDENCY_CACHE_SIZE),
  }
}

/** Controllers honor the duration of a Lease between these bounds (invariant 2). */
function parseLeaseDuration(name: string, text: string | undefined): number {
  const { leaseDurationMs: min, maxLeaseDurationMs: max } = defaults
  const ms = parseOptionalDuration(name, text) ?? min
  if (ms >= min && ms <= max) return ms
  throw new WorkerOptionError(`${name} ${JSON.stringify(text)} must be from ${formatDuration(min)} to ${formatDuration(max)}`)
}

const readOptional = (name: string, path: string | undefined) => (path ? readSetting(name, path) : undefined)

function requireVariable(env: Readonly<Record<string, string | undefined>>, name: string, what: string): string {
  const value = env[name]
  if (!value) throw new WorkerOptionError(`${name} is not set; it must be ${what}`)
  return value
}

function parseUrl(name: string, text: string): string {
  if (isUnixUrl(text)) {
    try {
      parseServerAddress(text)
      return text
    } catch (error) {
      throw new WorkerOptionError(`${name}: ${(error as Error).message}`)
    }
  }
  const protocol = URL.canParse(text) ? new URL(text).protocol : ''
  if (protocol === 'https:' || protocol === 'http:') return text.replace(/\/+$/, '')
  throw new WorkerOptionError(`${name} ${JSON.stringify(text)} must be an https://, http:// or unix:/// URL`)
}

function pathList(env: Readonly<Record<string, string | undefined>>, name: string): string[] {
  const paths = (env[name] ?? '').split(delimiter).filter(Boolean)
  for (const path of paths) {
    if (!path.startsWith('/')) {
      throw new WorkerOptionError(
        `${name} contains ${JSON.stringify(path)}; it must be absolute directories separated by ${JSON.stringify(delimiter)}`,
      )
    }
  }
  return paths
}

function token(env: Readonly<Record<string, string | undefined>>, { token, tokenFile }: WorkerOverrides): string {
  if (token) return token
  if (tokenFile !== undefined) return readToken('--token-file', tokenFile)
  if (env.OARLOCK_TOKEN_FILE) return readToken('OARLOCK_TOKEN_FILE', env.OARLOCK_TOKEN_FILE)
  return requireVariable(env, 'OARLOCK_TOKEN', 'a join token or a credential; or set OARLOCK_TOKEN_FILE to a file that contains it')
}

function readToken(name: string, path: string): string {
  const text = readSetting(name, path).trim()
  if (text === '') throw new WorkerOptionError(`${name}: token file ${JSON.stringify(path)} is empty`)
  return text
}

function parseOptionalDuration(name: string, text: string): number
function parseOptionalDuration(name: string, text: string | undefined): number | undefined
function parseOptionalDuration(name: string, text: string | undefined): number | undefined {
  if (!text) return undefined
  try {
    return parseDuration(text)
  } catch (error) {
    throw new WorkerOptionError(`${name}: ${(error as Error).message}`)
  }
}

function parseLifecycle(text: string | undefined): 'OneShot' | 'Warm' | undefined {
  if (text === undefined || text === '' || text === 'OneShot' || text === 'Warm') return text || undefined
  throw new WorkerOptionError(`OARLOCK_LIFECYCLE ${JSON.stringify(text)} must be OneShot or Warm`)
}

function parseCount(name: string, text: string | undefined, max: number): number | undefined {
  if (!text) return undefined
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  throw new WorkerOptionError(`${name} ${JSON.stringify(text)} must be a whole number from 1 to ${max}`)
}

function parseBytes(name: string, text: string | undefined): number | undefined {
  if (!text) return undefined
  try {
    return quantityValue(parseQuantity(text))
  } catch (error) {
    throw new WorkerOptionError(`${name}: ${(error as Error).message}`)
  }
}

function readSetting(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new WorkerOptionError(`${name} ${JSON.stringify(path)} cannot be read: ${(error as Error).message}`)
  }
}

function defaultName(): string {
  const host = hostname()
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/^-+|-+$/g, '')
  return `${host.slice(0, 40) || 'worker'}-${process.pid}-${Math.floor(Math.random() * 36 ** 4).toString(36)}`
}
