import { mkdirSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { delimiter } from 'node:path'
import { createClient } from '../client/index.ts'

export type WorkerProcessOptions = {
  name?: string
  pool: string
  once: boolean
  env: NodeJS.ProcessEnv
  /** Told what keeps the worker from starting. */
  onProblem(text: string): void
}

/** What a worker reads of its environment: `required` ends it when missing. */
const variables = {
  OARLOCK_SERVER: 'address of the API server, such as https://127.0.0.1:7466',
  OARLOCK_TOKEN: 'bearer token of this worker',
  OARLOCK_CA_FILE: 'PEM file with the certificate authority of the server',
  OARLOCK_RUNS_DIR: 'directory for the private directories of Runs',
  OARLOCK_CACHE_DIR: 'directory for caches that Runs share',
} as const

/** The worker's process: reads its environment, runs until its Run is done or a signal says so. Returns the exit code. */
export async function runWorkerProcess(options: WorkerProcessOptions): Promise<number> {
  // A copy: what the engine would inherit is removed from the process's own environment below.
  const env = { ...options.env }
  const missing = Object.entries(variables).filter(([name]) => !env[name])
  if (missing.length > 0) {
    for (const [name, what] of missing) options.onProblem(`oarlock worker: ${name} is not set: ${what}`)
    return 2
  }
  const { OARLOCK_SERVER: server = '', OARLOCK_TOKEN: token = '', OARLOCK_CA_FILE: caFile = '' } = env
  const { OARLOCK_RUNS_DIR: runsDir = '', OARLOCK_CACHE_DIR: cacheDir = '' } = env
  // What the engine inherits must not hold our credentials (invariant 9).
  for (const name of Object.keys(env)) if (name.startsWith('OARLOCK_')) delete process.env[name]
  const storeUrl = env.OARLOCK_STORE_URL ?? server
  const allowPaths = (env.OARLOCK_ALLOW_PATHS ?? '').split(delimiter).filter(Boolean)
  const name =
    options.name ??
    `${hostname()
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, '-')}-${process.pid}`
  for (const directory of [runsDir, cacheDir]) mkdirSync(directory, { recursive: true, mode: 0o700 })
  const caCertificate = readFileSync(caFile, 'utf8')
  void name
  void storeUrl
  void allowPaths
  const client = await createClient({ cluster: { server, caCertificate, token }, userAgent: 'oarlock-worker' })
  await client.close()
  return 0
}
