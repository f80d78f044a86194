/**
 * @module api: Oarlock's kinds, each declared once: TypeScript type, schema, CRD and reference page derive from that declaration.
 * Input: none. Output: the kinds with their defaults, labels and annotations, and pure functions on them.
 * Out of scope: behavior; what a field does is implemented in `controllers/` and `execution/`.
 * Start reading at `stack.ts`.
 */
import '../kubernetes/util/check-node-version.ts'
import type { CustomResource } from '../kubernetes/object/index.ts'
import { runResource } from './run.ts'
import { stackResource } from './stack.ts'

export { gitSecretKeys, maxInlineBytes, type StackSource, type VariablesFrom } from './stack-source.ts'

import { tenantResource } from './tenant.ts'
import { workerResource } from './worker.ts'
import { workerPoolResource } from './worker-pool.ts'

export { type AnsibleOptions, type AnsibleSecret, ansibleSchema, ansibleSecrets } from './ansible-options.ts'
export { cacheKey, dependencyCacheKey, maxCacheKeys } from './cache-key.ts'
export { type ControllerFigures, controllerFiguresOf, publishControllerFigures } from './controller-figures.ts'
export {
  type DurationDistribution,
  durationSampler,
  ProfileError,
  profileRecord,
  type WorkPhase,
  workPhases,
} from './duration-distribution.ts'
export { expectedStateVersion, isStateError, pendingImport, type StateErrorReason } from './expected-state-version.ts'
export { type LeaseRegistration, registeredBy, registrationOf } from './lease-registration.ts'
export { mayHaveResources, mayLeaveResources } from './may-have-resources.ts'
export {
  type ApprovalPolicy,
  annotations,
  apiGroup,
  approvalPolicyOf,
  assignedFinalizer,
  controllerLeaseName,
  defaults,
  isPodAccountName,
  labels,
  outputsSecretName,
  outputsSecretType,
  ownerAnnotation,
  podAccountName,
  sensitiveOutputsAnnotation,
  sensitiveOutputsIn,
  stackFinalizer,
  stackShardsName,
  systemNamespace,
  workersNamespace,
} from './names.ts'
export { oarlockCommand } from './oarlock-command.ts'
export { formatInterruption, formatPendingOperations, listPendingOperations, type PendingOperations } from './pending-operations.ts'
export {
  type BlockedReason,
  blockedReasons,
  isBlockedReason,
  isReconcilingPendingReason,
  type PendingReasonCode,
  pendingReasons,
  type ReconcilingPendingReason,
} from './pending-reasons.ts'
export {
  approvalOf,
  destructionOf,
  isShown,
  nothingToDestroy,
  rejectionOf,
  requiresApproval,
  type ShownVersion,
  shortDigest,
} from './plan-decision.ts'
export { raisedMemory } from './raise-memory.ts'
export { recordedEpoch } from './recorded-epoch.ts'
export { isRejected, workerBusyReason } from './rejected-run.ts'
export {
  type CrashReason,
  clearedPendingStatus,
  crashReasons,
  endedPhases,
  isEnded,
  isMutating,
  phaseOf,
  type Run,
  type RunPhase,
  type RunSpec,
  type RunStatus,
  type RunType,
  runPhases,
  runResource,
  runTypes,
  type WorkerPod,
} from './run.ts'
export { isRunFailureReason, type RunFailureReason, runFailureReasons } from './run-failure-reasons.ts'
export { engineOptionsProblem, formatRunOptions, maxAddresses, type RunOptions, runOptionsProblem } from './run-options.ts'
export { type AppliedPolicy, applyPolicy, mergePolicies, type PolicySource, type PolicyViolation, type RunPolicy } from './run-policy.ts'
export { formatRunRequest, type ParsedRunRequest, parseRunRequest, type RequestType, requestTypes } from './run-request.ts'
export { type IsolationLevel, isolationLevels, type Network, networks, type PriorityClass, priorityClasses } from './shared.ts'
export {
  type EngineName,
  engineNames,
  type Stack,
  type StackSpec,
  type StackStatus,
  stackResource,
  stackSpecSchema,
} from './stack.ts'
export {
  type Blocker,
  type DestructionFacts,
  decisionBlocker,
  deletionRunEffect,
  dependentsBlockers,
  destroyBlocker,
  destructionBlockers,
  formatBlocker,
  isConfirmedDeletion,
  type KnownState,
  type RequestedKind,
  reportsStateError,
  runBlocker,
} from './stack-blockers.ts'
export {
  type ApprovalReason,
  approvalReasons,
  driftedReasons,
  type ReconcilingReason,
  reportedState,
  type StackStateName,
  type StalledReason,
  stackStates,
} from './stack-conditions.ts'
export { activeRun, type StackState, stackMessage, stackState } from './stack-state.ts'
export { maxDiffBytes, type StoredDiff } from './stored-diff.ts'
export { type Subject, subjectOf } from './subject.ts'
export { type Tenant, type TenantSpec, type TenantStatus, tenantResource } from './tenant.ts'
export { type TrustDomainOwner, trustDomainName } from './trust-domain.ts'
export { satisfiesVersion } from './version-constraint.ts'
export {
  hasRegistered,
  isHostRequested,
  isStartRequested,
  type Worker,
  type WorkerSpec,
  type WorkerStatus,
  workerResource,
} from './worker.ts'
export { workerBucketCount, workerBucketOf } from './worker-bucket.ts'
export { checkWorkerLabels, parsePairs } from './worker-labels.ts'
export {
  isExclusive,
  type PoolWindow,
  poolPolicy,
  type ReportedPoolDemand,
  type WorkerPool,
  type WorkerPoolSpec,
  type WorkerPoolStatus,
  weekdays,
  workerPoolResource,
} from './worker-pool.ts'

/** All kinds of Oarlock, in the order in which their CRDs are applied. */
export const oarlockResources: readonly CustomResource<unknown>[] = [
  tenantResource,
  workerPoolResource,
  workerResource,
  stackResource,
  runResource,
]
