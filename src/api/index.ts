/**
 * @module api: Oarlock's own kinds, each declared once. Type, schema and CRD all come from that one declaration.
 * Start reading at `stack.ts`. Nothing is decided here; what a field leads to is the work of `stack/`, `dispatch/` and `worker/`.
 */
import type { CustomResource } from '../kubernetes/object/index.ts'
import { runResource } from './run.ts'
import { stackResource } from './stack.ts'
import { tenantResource } from './tenant.ts'
import { workerResource } from './worker.ts'
import { workerPoolResource } from './worker-pool.ts'

export { cacheKey, maxCacheKeys } from './cache-key.ts'
export { annotations, apiGroup, defaults, labels, outputsSecretName, outputsSecretType, systemNamespace } from './names.ts'
export { ProfileError, profileRecord, type Times, timesOf, type WorkPhase, workPhases } from './profile-times.ts'
export { raisedMemory } from './raised-memory.ts'
export {
  endedPhases,
  isEnded,
  isMutating,
  type Run,
  type RunPhase,
  type RunSpec,
  type RunStatus,
  type RunType,
  runPhases,
  runResource,
  runTypes,
  waitsNoMore,
} from './run.ts'
export { type IsolationLevel, isolationLevels, type PriorityClass, priorityClasses } from './shared.ts'
export {
  type EngineName,
  engineNames,
  maxInlineBytes,
  type Stack,
  type StackSource,
  type StackSpec,
  type StackStatus,
  stackResource,
  type VariablesFrom,
} from './stack.ts'
export { type Tenant, type TenantSpec, type TenantStatus, tenantResource } from './tenant.ts'
export { versionMatches } from './version-constraint.ts'
export { type Worker, type WorkerSpec, type WorkerStatus, workerResource } from './worker.ts'
export {
  type PoolWindow,
  type WorkerPool,
  type WorkerPoolSpec,
  type WorkerPoolStatus,
  weekdays,
  workerPoolResource,
} from './worker-pool.ts'

/** Every kind of Oarlock, in the order their CRDs are applied. */
export const oarlockResources: readonly CustomResource<unknown>[] = [
  tenantResource,
  workerPoolResource,
  workerResource,
  stackResource,
  runResource,
]
