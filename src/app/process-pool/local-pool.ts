import { delimiter, join } from 'node:path'
import type { Log } from '../../kubernetes/controller/index.ts'
import { HostCapabilities } from './host-capabilities.ts'
import { ProcessPool } from './process-pool.ts'

export type LocalPoolOptions = {
  /** Holds the output of workers, the directories of their Runs and the cache that they share. */
  dataDir: string
  /** Program and leading arguments that start a worker, such as Node and bin/oarlock.js. */
  launcher: readonly string[]
  /** The address and the credential of a worker: OARLOCK_SERVER, OARLOCK_STORE_URL, OARLOCK_CA_FILE, OARLOCK_TOKEN and OARLOCK_TOKEN_TTL. */
  connection(workerName: string, pool: string): Promise<Readonly<Record<string, string | undefined>>>
  allowPaths: readonly string[]
  log: Log
}

/** The worker processes of this machine. */
export function openProcessPool({ dataDir, launcher, connection, allowPaths, log }: LocalPoolOptions): ProcessPool {
  const hostCapabilities = new HostCapabilities()
  return new ProcessPool({
    launcher,
    outputDirectory: join(dataDir, 'workers'),
    log,
    environmentOf: async (workerName, { metadata }) => ({
      ...process.env,
      OARLOCK_TOKEN_FILE: undefined,
      OARLOCK_TOKEN_TTL: undefined,
      OARLOCK_LEASE_DURATION: undefined,
      OARLOCK_WORKER_NAME: undefined,
      OARLOCK_WORKER_UID: undefined,
      OARLOCK_POOL: undefined,
      OARLOCK_POOL_SETTINGS: undefined,
      OARLOCK_DATA: undefined,
      OARLOCK_RUNS_DIR: join(dataDir, 'runs'),
      OARLOCK_CACHE_DIR: join(dataDir, 'cache'),
      OARLOCK_ALLOW_PATHS: allowPaths.join(delimiter),
      ...hostCapabilities.environment(),
      ...(await connection(workerName, metadata.name)),
    }),
  })
}

/** An interrupted engine gets SIGINT, after 60 s SIGTERM and after 10 more SIGKILL; then its worker reports. */
const interruptTimeoutMs = 80_000
/** Workers that have finished exit within this time, so that they are not reported as running. */
const exitDelayMs = 500

/** Lets the workers finish for `graceMs`, then interrupts their engines so that they save their state. */
export async function drainProcessPool(
  pool: ProcessPool,
  { graceMs, onProgress, log }: { graceMs: number; onProgress?: ((running: number) => void) | undefined; log: Log },
): Promise<void> {
  pool.drain()
  if (!(await pool.whenEmpty(Math.min(graceMs, exitDelayMs)))) onProgress?.(pool.running().length)
  if (await pool.whenEmpty(Math.max(0, graceMs - exitDelayMs))) return
  pool.interrupt()
  if (!(await pool.whenEmpty(interruptTimeoutMs)))
    log.error({ workers: pool.running() }, 'workers did not exit in time; they end when their Leases expire')
}
