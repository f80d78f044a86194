import { defaults, poolPolicy, type RunPolicy, type WorkerPool } from '../../../api/index.ts'

/**
 * The environment variables of a worker of the pool, which `oarlock worker` reads: its name, its pool and its settings. Drivers add the address
 * of the server and a credential. `spec.idleTimeout` is not among them: only dispatch knows which workers are above the minimum, and drains those.
 */
export function workerEnvironment({ metadata, spec }: WorkerPool, workerName: string): Record<string, string> {
  const { lifecycle = 'OneShot', slots = 1, recycle, drainGrace = defaults.drainGrace, engineEnvironment = [] } = spec
  return {
    OARLOCK_WORKER_NAME: workerName,
    OARLOCK_POOL: metadata.name,
    // A driver of an earlier version passes no policy: then the worker reads the pool, as it does when a user starts it.
    OARLOCK_POOL_SETTINGS: 'complete',
    OARLOCK_LIFECYCLE: lifecycle,
    OARLOCK_SLOTS: String(slots),
    OARLOCK_DRAIN_GRACE: drainGrace,
    OARLOCK_ENGINE_ENVIRONMENT: engineEnvironment.join(','),
    ...policyEnvironment(poolPolicy(spec)),
    ...(recycle?.afterRuns !== undefined && { OARLOCK_RECYCLE_AFTER_RUNS: String(recycle.afterRuns) }),
    ...(recycle?.aboveMemory !== undefined && { OARLOCK_RECYCLE_ABOVE_MEMORY: recycle.aboveMemory }),
  }
}

/** What the worker enforces whatever its Runs say. */
function policyEnvironment({ minimumIsolation, allowedNetworks, maxResources }: RunPolicy): Record<string, string> {
  const maximums = Object.entries(maxResources ?? {}).map(([name, maximum]) => `${name}=${maximum}`)
  return {
    ...(minimumIsolation && { OARLOCK_MINIMUM_ISOLATION: minimumIsolation }),
    ...(allowedNetworks && { OARLOCK_ALLOWED_NETWORKS: allowedNetworks.join(',') }),
    ...(maximums.length > 0 && { OARLOCK_MAX_RESOURCES: maximums.join(',') }),
  }
}
