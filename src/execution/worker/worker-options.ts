import { readFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { defaults } from '../../api/index.ts'
import { nameErrors, parseDuration, parseQuantity, quantityValue } from '../../kubernetes/object/index.ts'
import { parseEngineEnvironment } from './engine-environment.ts'
import { capabilitiesFromEnv, type WorkerCapabilities } from './worker-capabilities.ts'
import { WorkerOptionError } from './worker-option-error.ts'

/** Everything a worker process is told from outside, apart from what its caller makes (client, log, signals). */
export type WorkerSettings = {
  name: string
  pool: string
  /** Undefined when nobody said so: then the pool does. */
  lifecycle: 'OneShot' | 'Warm' | undefined
  slots: number | undefined
  capabilities: WorkerCapabilities
  /** A worker that has had no Run for so long ends; undefined: never by itself. */
  idleTimeoutMs: number | undefined
  recycleAfterRuns: number | undefined
  recycleAboveBytes: number | undefined
  /** Where the worker's health is served, as HOST:PORT; undefined: nowhere. */
  health: string | undefined
  /** `https://host:port` of the API. */
  server: string
  caCertificate: string | undefined
  token: string
  /** Where state and logs are kept. Default: the server. */
  storeUrl: string
  runsDir: string
  cacheDir: string
  allowPaths: string[]
  /** What sandboxed engines may read besides the system's programs. */
  sandboxBinds: string[]
  /** Variables of the worker's own environment that engines get; undefined: as its pool says. */
  engineEnvironment: string[] | undefined
  /** How long a Run may go on after the worker was told to stop; undefined: as its pool says. */
  drainGraceMs: number | undefined
}

/** What stands on the command line; it wins over the environment. */
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
  health?: string
}

/**
 * Reads OARLOCK_SERVER, OARLOCK_CA_FILE, OARLOCK_TOKEN or OARLOCK_TOKEN_FILE, OARLOCK_STORE_URL, OARLOCK_RUNS_DIR, OARLOCK_CACHE_DIR,
 * OARLOCK_ALLOW_PATHS, OARLOCK_SANDBOX_BINDS (both separated as in PATH), OARLOCK_ENGINE_ENVIRONMENT (separated by commas), OARLOCK_DRAIN_GRACE and OARLOCK_IDLE_TIMEOUT (such as `10m`), OARLOCK_LIFECYCLE,
 * OARLOCK_HEALTH (HOST:PORT), OARLOCK_SLOTS, OARLOCK_LABELS, OARLOCK_ENGINES, OARLOCK_CPU, OARLOCK_MEMORY ({@link capabilitiesFromEnv}), OARLOCK_RECYCLE_AFTER_RUNS and OARLOCK_RECYCLE_ABOVE_MEMORY (such as `512Mi`).
 * @throws {WorkerOptionError} naming the variable, what came and what is allowed.
 */
export function workerOptionsFromEnv(env: Readonly<Record<string, string | undefined>>, overrides: WorkerOverrides = {}): WorkerSettings {
  const server =
    overrides.server ?? required(env, 'OARLOCK_SERVER', 'the address of the API, such as https://127.0.0.1:7466; or say --server')
  const name = overrides.name ?? env.OARLOCK_WORKER_NAME ?? defaultName()
  const [wrong] = nameErrors(name, 'dns1123Subdomain')
  if (wrong) throw new WorkerOptionError(`--name ${JSON.stringify(name)}: ${wrong}`)
  const base = join(tmpdir(), 'oarlock-worker')
  return {
    name,
    pool: overrides.pool ?? env.OARLOCK_POOL ?? defaults.pool,
    lifecycle: overrides.once ? 'OneShot' : lifecycle(env.OARLOCK_LIFECYCLE),
    capabilities: capabilitiesFromEnv(env, overrides.label),
    slots: overrides.slots ?? count('OARLOCK_SLOTS', env.OARLOCK_SLOTS, 64),
    idleTimeoutMs: span('OARLOCK_IDLE_TIMEOUT', overrides.idleTimeout ?? env.OARLOCK_IDLE_TIMEOUT),
    recycleAfterRuns: count('OARLOCK_RECYCLE_AFTER_RUNS', env.OARLOCK_RECYCLE_AFTER_RUNS, 1_000_000),
    recycleAboveBytes: bytes('OARLOCK_RECYCLE_ABOVE_MEMORY', env.OARLOCK_RECYCLE_ABOVE_MEMORY),
    server: url('OARLOCK_SERVER', server),
    caCertificate: env.OARLOCK_CA_FILE ? readSetting('OARLOCK_CA_FILE', env.OARLOCK_CA_FILE) : undefined,
    token: token(env, overrides),
    health: overrides.health ?? (env.OARLOCK_HEALTH || undefined),
    storeUrl: url('OARLOCK_STORE_URL', env.OARLOCK_STORE_URL || server),
    runsDir: env.OARLOCK_RUNS_DIR || join(base, 'runs'),
    cacheDir: env.OARLOCK_CACHE_DIR || join(base, 'cache'),
    allowPaths: pathList(env, 'OARLOCK_ALLOW_PATHS'),
    sandboxBinds: pathList(env, 'OARLOCK_SANDBOX_BINDS'),
    engineEnvironment: env.OARLOCK_ENGINE_ENVIRONMENT === undefined ? undefined : parseEngineEnvironment(env.OARLOCK_ENGINE_ENVIRONMENT),
    drainGraceMs: span('OARLOCK_DRAIN_GRACE', env.OARLOCK_DRAIN_GRACE),
  }
}

function required(env: Readonly<Record<string, string | undefined>>, name: string, what: string): string {
  const value = env[name]
  if (!value) throw new WorkerOptionError(`${name} is not set; it must be ${what}`)
  return value
}

function url(name: string, text: string): string {
  const protocol = URL.canParse(text) ? new URL(text).protocol : ''
  if (protocol === 'https:' || protocol === 'http:') return text.replace(/\/+$/, '')
  throw new WorkerOptionError(`${name} ${JSON.stringify(text)} must be an http:// or https:// URL`)
}

function pathList(env: Readonly<Record<string, string | undefined>>, name: string): string[] {
  const paths = (env[name] ?? '').split(delimiter).filter(Boolean)
  for (const path of paths) {
    if (!path.startsWith('/')) {
      throw new WorkerOptionError(
        `${name} holds ${JSON.stringify(path)}; it must be absolute directories, separated by ${JSON.stringify(delimiter)}`,
      )
    }
  }
  return paths
}

function token(env: Readonly<Record<string, string | undefined>>, { token, tokenFile }: WorkerOverrides): string {
  if (token) return token
  if (tokenFile) return readSetting('--token-file', tokenFile).trim()
  if (env.OARLOCK_TOKEN_FILE) return readSetting('OARLOCK_TOKEN_FILE', env.OARLOCK_TOKEN_FILE).trim()
  return required(env, 'OARLOCK_TOKEN', 'a join token or a credential; or name a file that holds it in OARLOCK_TOKEN_FILE')
}

function span(name: string, text: string): number
function span(name: string, text: string | undefined): number | undefined
function span(name: string, text: string | undefined): number | undefined {
  if (!text) return undefined
  try {
    return parseDuration(text)
  } catch (error) {
    throw new WorkerOptionError(`${name}: ${(error as Error).message}`)
  }
}

function lifecycle(text: string | undefined): 'OneShot' | 'Warm' | undefined {
  if (text === undefined || text === '' || text === 'OneShot' || text === 'Warm') return text || undefined
  throw new WorkerOptionError(`OARLOCK_LIFECYCLE ${JSON.stringify(text)} must be OneShot or Warm`)
}

function count(name: string, text: string | undefined, max: number): number | undefined {
  if (!text) return undefined
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  throw new WorkerOptionError(`${name} ${JSON.stringify(text)} must be a whole number from 1 to ${max}`)
}

function bytes(name: string, text: string | undefined): number | undefined {
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
    throw new WorkerOptionError(`${name} names ${JSON.stringify(path)}, which cannot be read: ${(error as Error).message}`)
  }
}

function defaultName(): string {
  const host = hostname()
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/^-+|-+$/g, '')
  return `${host.slice(0, 40) || 'worker'}-${process.pid}-${Math.floor(Math.random() * 36 ** 4).toString(36)}`
}
