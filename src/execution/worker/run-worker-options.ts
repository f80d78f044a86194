import type { Agent } from 'node:http'
import type { Run, RunPolicy } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Log } from '../../kubernetes/util/index.ts'
import type { WorkerHealth } from './decide-health.ts'
import { Heartbeat, type HeartbeatOptions } from './lease/heartbeat.ts'
import type { LeaseTimings } from './lease/lease-timings.ts'
import type { ExecuteOptions, Execution } from './run/execution.ts'
import type { RejectRunOptions } from './run/reject-run.ts'
import type { OpenRunAccess } from './run/run-access.ts'
import type { RunLog } from './run/run-log.ts'
import { SupervisorClient, type SupervisorClientOptions } from './supervisor/index.ts'
import type { WorkerCapabilities } from './worker-capabilities.ts'
import type { RunSelection } from './worker-watches.ts'

export type RunWorkerOptions = {
  name: string
  pool: string
  /** True: executes one Run for each slot and exits. False: executes Runs until it is drained. */
  once: boolean
  /** Runs at the same time. Default: 1. */
  slots?: number
  /** What it registers with. Default: nothing. */
  capabilities?: WorkerCapabilities
  /** The uid of the Worker with which a controller requested this process; it takes over that Worker. Default: it creates its own. */
  workerUid?: string | undefined
  /** The UID of the Pod that this process runs in, if a controller created it. Default: it is no such Pod. */
  podUid?: string | undefined
  /**
   * A worker with `once` that has executed its Runs and exits with 0 leaves its Worker to the controller, which sees the end of its Pod and deletes several
   * Workers with one request. Default: it deletes its Worker itself, as it does in every other case.
   */
  isDeregisteredByController?: boolean | undefined
  /** Which Runs the worker reads; each of these is watched on its own, and they do not overlap. Default: all. */
  runSelections?: readonly RunSelection[] | undefined
  client: Client
  /** Base URL of the state and log stores, such as `https://127.0.0.1:7466`. */
  storeUrl: string
  /** PEM of the certificate authority of the stores; undefined for those of the system. */
  storeCaCertificate: string | undefined
  /** Where Runs are that this server only passes on, as a gateway does. Default: all are on this server, and their stores at `storeUrl`. */
  openRunAccess?: OpenRunAccess | undefined
  caCertificate: string | undefined
  /** Credential for the API and both stores; a function if it changes, as a short-lived one does. */
  token: string | (() => string)
  runsDir: string
  cacheDir: string
  /** Bytes that the cache of git repositories is reduced to. Default: 10 GiB. */
  gitCacheBytes?: number | undefined
  /** Bytes that the cache of providers is reduced to. Default: 10 GiB. */
  providerCacheBytes?: number | undefined
  /** Bytes that the store of installed packages is reduced to. Default: 10 GiB. */
  dependencyCacheBytes?: number | undefined
  allowPaths: readonly string[]
  /** Absolute paths that sandboxed engines may read besides the system's programs. Default: none. */
  sandboxBinds?: readonly string[]
  /** Variables of this process's environment that engines get: names, or prefixes followed by `*`. Default: none. */
  engineEnvironment?: readonly string[]
  /** What this worker requires of its Runs, besides `spec.policy` of each. Default: nothing. */
  policy?: RunPolicy
  log: Pick<Log, 'info' | 'warn'>
  /** Aborting it drains: no further Run is started, those that run may finish within `drainGraceMs`. */
  signal: AbortSignal
  /** Aborting it interrupts the Runs immediately, as their engines intend. */
  interruptSignal?: AbortSignal
  /** Grace period of a drain. Default: 600,000. */
  drainGraceMs?: number
  /** A worker without a Run for this long exits. Default: never; pools scale down their own workers. */
  idleTimeoutMs?: number
  /** When a worker that is not `once` makes room for a new one: after N Runs, or above this memory between Runs. Default: never. */
  recycle?: { afterRuns?: number; aboveMemoryBytes?: number }
  lease?: Partial<LeaseTimings>
  version?: string
  /** For tests: where the lines of a Run go. Default: the log store at `storeUrl`. */
  openLog?(run: Run): RunLog
  /** Receives a function that returns the current health, for the health endpoints. */
  onHealth?(health: () => WorkerHealth): void
}

/** The parts of a worker that are processes and threads of their own; unit tests replace them. */
export type WorkerParts = {
  createSupervisor(options: SupervisorClientOptions): SupervisorPart
  createHeartbeat(options: HeartbeatOptions): HeartbeatPart
  executeRun(options: ExecuteOptions): Promise<Execution>
  rejectRun(options: RejectRunOptions): Promise<void>
}

export type SupervisorPart = Pick<SupervisorClient, 'worker' | 'ready' | 'pid' | 'supervise' | 'renewed' | 'renewCredential' | 'close'>
export type HeartbeatPart = Pick<
  Heartbeat,
  'renewedAtMs' | 'start' | 'isStatusInLease' | 'reportStatus' | 'useSupervisor' | 'deregister' | 'stopRenewing'
>

export const defaultParts: WorkerParts = {
  createSupervisor: options => new SupervisorClient(options),
  createHeartbeat: options => new Heartbeat(options),
  executeRun: async options => (await import('./run/index.ts')).executeRun(options),
  rejectRun: async options => (await import('./run/index.ts')).rejectRun(options),
}

/** The settings of the worker that its executions get. */
export function executionSettings(options: RunWorkerOptions) {
  const { name, storeCaCertificate, sandboxBinds = [], engineEnvironment = [], policy = {} } = options
  return { ...options, workerName: name, caCertificate: storeCaCertificate, sandboxBinds, engineEnvironment, policy }
}

/** Opens the log of a Run: the one that a test replaces it with, else the log store's. */
export async function openLog(options: RunWorkerOptions, storeAgent: Agent, run: Run): Promise<RunLog> {
  if (options.openLog) return options.openLog(run)
  const { openRunLog } = await import('./run/index.ts')
  const { name, log } = options
  const onError = (error: Error) => log.warn({ worker: name, error: error.message }, 'failed to send the log of a run')
  return openRunLog({ ...options, storeAgent, run, onError })
}
