import type { Agent } from 'node:http'
import type { Run, RunPolicy } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import type { StateClient } from '../../../stores/state/index.ts'
import type { FenceTimings } from '../lease/decide-fence.ts'
import type { SupervisorClient } from '../supervisor/index.ts'
import type { PulumiStateClient } from './pulumi-state.ts'
import type { RunLog } from './run-log.ts'
import type { StopCause } from './stop-cause.ts'

/** The calls of the state store that a Run makes. */
export type RunStateClient = Pick<
  StateClient,
  | 'lock'
  | 'newestVersion'
  | 'unlock'
  | 'read'
  | 'write'
  | 'getPlan'
  | 'putPlan'
  | 'putDiff'
  | 'getConfiguration'
  | 'putConfiguration'
  | 'readInventory'
  | 'writeInventory'
  | 'getInputs'
  | 'getOutputs'
  | 'putOutputs'
  | 'deleteOutputs'
  | 'close'
> &
  PulumiStateClient

export type ExecuteOptions = {
  client: Client
  run: Run
  workerName: string
  /** Base URL of the state and log stores. */
  storeUrl: string
  /** PEM of the CA of the stores. Default: the system's. */
  caCertificate: string | undefined
  /** Connections to the stores. */
  storeAgent: Agent
  /** Credential for the stores; a function if it changes. */
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
  /** Absolute paths that sandboxes may read besides the system's programs. */
  sandboxBinds: readonly string[]
  /** Variables of this process's environment that the engine gets: names, or prefixes followed by `*`. */
  engineEnvironment: readonly string[]
  /** What this worker requires of its Runs, besides `spec.policy` of each. */
  policy: RunPolicy
  times: FenceTimings
  /** Milliseconds since before the last successful renewal was sent (invariant 2). */
  sinceRenewalMs(): number
  supervisor: Pick<SupervisorClient, 'supervise'>
  /** Why the Run must not be started: only its result is reported. Default: it is started. */
  stopCause?: StopCause
  log: RunLog
  /** Receives the current version of the Run's engine; undefined if it is not installed. */
  onEngine?(engine: string, version: string | undefined): void
  /** Receives the key, for placement, of dependencies that this host now has installed. */
  onDependencies?(cacheKey: string): void
  /** For tests. Default: a client of the state store at `storeUrl`. */
  state?: RunStateClient
}

/**
 * `reported`: the result is written and everything is cleaned up. `unsaved`: it is written, but the supervisor still has to save the
 * state. `abandoned`: the result is not this worker's to write; the supervisor cleans up.
 */
export type ExecuteResult = 'reported' | 'unsaved' | 'abandoned'

/** A Run that this worker executes. */
export type Execution = {
  done: Promise<ExecuteResult>
  /** Takes a version of the Run that a watch delivered. */
  observe(run: Run): void
  /** Stops the engine; the first cause is reported. */
  stop(cause: StopCause): void
  /** The Lease was renewed. */
  renewed(): void
}
