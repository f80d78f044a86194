import type { Run } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { type RunRequest, requestOf } from '../dispatch/index.ts'
import { jitteredIntervalMs, jitterOf, priorityClassOf, retryDelayMs, type Settings } from '../stack/index.ts'

/** Why a Run is created; a retry has the cause of the failed Run. */
export type RunCause = 'DriftCheck' | 'Change'

/**
 * The load of one Stack. At most one of its Runs is queued or active (invariant 1), so its key identifies the Run.
 * `Idle` → `Queued` (due, or changed) → `Running` (assigned) → `Idle`.
 */
export type StackLoad = {
  readonly key: string
  readonly tenant: number
  readonly jitter: number
  readonly requests: Readonly<Record<RunCause, RunRequest>>
  phase: 'Idle' | 'Queued' | 'Running'
  cause: RunCause
  /** Arrival of its Run in the queue. A wait before that, such as for its own previous Run, does not depend on the workers. */
  arrivedMs: number
  /** While Idle: when its next Run is due; Infinity: never. A Due event of another time is outdated. */
  dueMs: number
  /** It changed while its Run was active. */
  hasChanged: boolean
  /** Consecutive failed Runs for the current inputs. */
  failures: number
}

export function makeStackLoad(index: number, tenant: number, epochMs: number): StackLoad {
  const key = `tenant-${tenant}/stack-${index}`
  return {
    key,
    tenant,
    jitter: jitterOf(key),
    requests: { DriftCheck: requestFor(key, 'DriftCheck', epochMs), Change: requestFor(key, 'Change', epochMs) },
    phase: 'Idle',
    cause: 'DriftCheck',
    arrivedMs: 0,
    dueMs: Number.POSITIVE_INFINITY,
    hasChanged: false,
    failures: 0,
  }
}

/** The queue request of a Run; `stack/` and `dispatch/` compute its priority class and requirements. */
function requestFor(key: string, cause: RunCause, epochMs: number): RunRequest {
  const [namespace = '', name = ''] = key.split('/')
  const metadata = { name, namespace, uid: key, resourceVersion: '1', creationTimestamp: rfc3339(epochMs) }
  const stack = { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Stack', metadata, spec: { engine: 'command' as const, source: {} } }
  const reason = cause === 'Change' ? 'NewGeneration' : 'DriftCheck'
  const run: Run = {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Run',
    metadata,
    spec: {
      type: 'Apply',
      stackRef: { name, uid: key, generation: 1 },
      epoch: 1,
      stack: stack.spec,
      revision: '',
      inputsDigest: '',
      reason,
      pool: poolName,
      priorityClass: priorityClassOf(stack, { type: 'Apply', reason, atMs: 0 }, [], undefined),
      priority: 0,
    },
  }
  return requestOf(run)
}

/** Name of the simulated pool. */
export const poolName = 'default'

export type NextRun = { readonly cause: RunCause; readonly atMs: number }

/**
 * The next Run of a Stack after a Run ended at `nowMs`, as `decideStack` decides it: for a change that arrived meanwhile, immediately; a retry after
 * the backoff, up to the limit; else the next drift check, one interval later. Undefined: none until the Stack changes.
 *
 * Updates `load.failures`.
 */
export function afterRun(load: StackLoad, isFailed: boolean, settings: Settings, nowMs: number): NextRun | undefined {
  if (load.hasChanged) {
    load.failures = 0
    return { cause: 'Change', atMs: nowMs }
  }
  if (isFailed) {
    load.failures++
    if (load.failures > settings.retryLimit) return undefined
    return { cause: load.cause, atMs: nowMs + retryDelayMs(settings, load.failures) }
  }
  load.failures = 0
  const { intervalMs } = settings
  return intervalMs === undefined ? undefined : { cause: 'DriftCheck', atMs: nowMs + jitteredIntervalMs(intervalMs, load.jitter) }
}
