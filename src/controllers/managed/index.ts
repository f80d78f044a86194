/**
 * @module controllers/managed: controllers of external resources, published as `oarlock/managed`. Start reading at `decide-step.ts`, which has the sequence of one
 * reconcile, then `reconcile-managed.ts`, which executes it.
 * In: an author's functions for one kind. Out: a controller with the guarantees of Crossplane's managed reconciler, and its annotations, policies, conditions and
 * metrics. Deciders are pure (`decide-step.ts`, `decide-lock.ts`); time and randomness are passed in.
 * Not done here: caches, queues and sharding (`kubernetes/controller`).
 */
import '../../kubernetes/util/check-node-version.ts'

export { annotations, externalNameOf } from './annotations.ts'
export type { ChangeLog, ChangeLogEntry } from './change-log.ts'
export { managedFinalizer } from './decide-step.ts'
export {
  type DispatchedState,
  type DispatchOptions,
  dispatchToStack,
  type OperationKind,
  runOperation,
  type StackDispatchOptions,
} from './dispatch/index.ts'
export { LockLostError } from './lock-lost-error.ts'
export { managed } from './managed.ts'
export {
  type Change,
  type ConnectionDetails,
  type ManagedBody,
  managedColumns,
  managedSpec,
  managedStatus,
  type Observation,
  type RunReport,
} from './managed-object.ts'
export type { ExternalRequest, ManagedOptions } from './managed-options.ts'
export type { ManagementAction } from './management-policies.ts'
export type { Reference } from './references.ts'
export { ResourceLocks, type ResourceLocksOptions } from './resource-locks.ts'
export { type ProviderProgram, runProvider } from './run-provider.ts'
export { UnknownOutcomeError } from './unknown-outcome-error.ts'
