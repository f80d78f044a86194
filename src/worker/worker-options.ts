import { readFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { defaults } from '../api/index.ts'
import { nameErrors, parseDuration } from '../kube/index.ts'

/** Everything a worker process is told from outside, apart from what its caller makes (client, log, signals). */
export type WorkerSettings = {
  name: string
  pool: string
  once: boolean
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
  /** How long a Run may go on after the worker was told to stop. Default: 600,000. */
  drainGraceMs: number
}

/** What stands on the command line; it wins over the environment. */
export type WorkerOverrides = { name?: string; pool?: string; once?: boolean }

/** A setting that is missing or wrong: exit code 2. */
export class WorkerOptionError extends Error {
  override readonly name = 'WorkerOptionError'
}

/**
 * Reads OARLOCK_SERVER, OARLOCK_CA_FILE, OARLOCK_TOKEN or OARLOCK_TOKEN_FILE, OARLOCK_STORE_URL, OARLOCK_RUNS_DIR, OARLOCK_CACHE_DIR,
 * OARLOCK_ALLOW_PATHS, OARLOCK_SANDBOX_BINDS (both separated as in PATH) and OARLOCK_DRAIN_GRACE (such as `10m`).
 * @throws {WorkerOptionError} naming the variable, what came and what is allowed.
 */
export function workerOptionsFromEnv(env: Readonly<Record<string, string | undefined>>, overrides: WorkerOverrides = {}): WorkerSettings {
  const server = required(env, 'OARLOCK_SERVER', 'the address of the API, such as https://127.0.0.1:7466')
  const name = overrides.name ?? env.OARLOCK_WORKER_NAME ?? defaultName()
  const [wrong] = nameErrors(name, 'dns1123Subdomain')
  if (wrong) throw new WorkerOptionError(`--name ${JSON.stringify(name)}: ${wrong}`)
  const base = join(tmpdir(), 'oarlock-worker')
  return {
    name,
    pool: overrides.pool ?? env.OARLOCK_POOL ?? defaults.pool,
    once: overrides.once ?? false,
    server: url('OARLOCK_SERVER', server),
    caCertificate: env.OARLOCK_CA_FILE ? readSetting('OARLOCK_CA_FILE', env.OARLOCK_CA_FILE) : undefined,
    token: env.OARLOCK_TOKEN_FILE
      ? readSetting('OARLOCK_TOKEN_FILE', env.OARLOCK_TOKEN_FILE).trim()
      : required(env, 'OARLOCK_TOKEN', "the worker's credential; or name a file that holds it in OARLOCK_TOKEN_FILE"),
    storeUrl: url('OARLOCK_STORE_URL', env.OARLOCK_STORE_URL || server),
    runsDir: env.OARLOCK_RUNS_DIR || join(base, 'runs'),
    cacheDir: env.OARLOCK_CACHE_DIR || join(base, 'cache'),
    allowPaths: pathList(env, 'OARLOCK_ALLOW_PATHS'),
    sandboxBinds: pathList(env, 'OARLOCK_SANDBOX_BINDS'),
    drainGraceMs: drainGrace(env.OARLOCK_DRAIN_GRACE || '10m'),
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

function drainGrace(text: string): number {
  try {
    return parseDuration(text)
  } catch (error) {
    throw new WorkerOptionError(`OARLOCK_DRAIN_GRACE: ${(error as Error).message}`)
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
