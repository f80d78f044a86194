import type { Run } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { type RunRequest, requestOf } from '../dispatch/index.ts'
import { jitteredIntervalMs, jitterOf, priorityClassOf, retryDelayMs, type Settings } from '../stack/index.ts'

/** Why a Run is made, as far as it matters for load: a retry is a Run of the same cause. */
export type RunCause = 'DriftCheck' | 'Change'

/**
 * A Stack as the load it is. At most one Run of it waits or runs (invariant 1), so its key stands for its Run.
 * `Idle` → `Queued` (it is due, or changed) → `Running` (it has a worker) → `Idle`.
 */
export type StackLoad = {
  readonly key: string
  readonly tenant: number
  readonly jitter: number
  readonly requests: Readonly<Record<RunCause, RunRequest>>
  phase: 'Idle' | 'Queued' | 'Running'
  cause: RunCause
  /** Since when its Run waits: what it waited for before, such as its own last Run, no worker could have changed. */
  arrivedMs: number
  /** While Idle: when its next Run is due; Infinity: never. Events of other times are outdated. */
  dueMs: number
  /** It changed while its Run was under way. */
  hasChanged: boolean
  /** Failed Runs in a row for the present inputs. */
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

/** Puts a Run into the queue: its class and what it needs are what `stack/` and `dispatch/` say of such a Run. */
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
      pool,
      priorityClass: priorityClassOf(stack, { type: 'Apply', reason, atMs: 0 }, [], undefined),
      priority: 0,
    },
  }
  return requestOf(run)
}

/** The pool that is simulated. */
export const pool = 'default'

export type NextRun = { readonly cause: RunCause; readonly atMs: number }

/**
 * What a Stack needs after its Run ended at `nowMs`, as `decideStack` does: a change that came meanwhile at once; a retry after the
 * backoff, until none is left; else the next drift check, an interval later. Undefined: nothing, until it changes.
 *
 * Counts failures in `load`.
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
