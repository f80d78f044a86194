/**
 * @module kubernetes/controller: a controller runtime for any Kubernetes API. Start reading at `manager.ts`, then `controller.ts`.
 * In: a client, declared kinds, a reconcile function. Out: calls of that function, one per key at a time (invariant 7), until it succeeds.
 * Not done here: talking HTTP (`client/`), what a kind means (`api/`), external resources.
 * Deciders are pure (`decide-election.ts`, `reconcile.ts`); time and randomness are passed in.
 */
import '../util/check-node-version.ts'

export { collectGarbageWhenIdle } from '../util/idle-gc.ts'
export { coerceError, type Log, silentLog } from '../util/log.ts'
export { systemTimers, type Timers } from '../util/timers.ts'
export {
  type AddOptions,
  lowPriority,
  normalPriority,
  type RetryRate,
  WorkQueue,
  type WorkQueueObserver,
  type WorkQueueOptions,
} from '../util/work-queue.ts'
export type { ChangeHandler } from './change-handlers.ts'
export { ChangingSelector } from './changing-selector.ts'
export { type KstatusResult, kstatusOf, type Progress, withProgress } from './conditions.ts'
export { consoleLog, type LogLevel } from './console-log.ts'
export { type Controller, type ControllerHost, type ControllerOptions, controller } from './controller.ts'
export { decideElection, type ElectionAction, type LeaseObservation, observeLease } from './decide-election.ts'
export { EventRecorder, type EventRecorderOptions } from './event-recorder.ts'
export type { Health } from './health.ts'
export { dropManagedFields, Informer, type InformerOptions, type InformerParts } from './informer.ts'
export { type LeaseCallbacks, LeaseHolder, type LeaseHolderParts, type LeaseOptions, type LeaseStore, leaseStore } from './lease-holder.ts'
export { Manager, type ManagerOptions, type Runnable, type RunOptions } from './manager.ts'
export { mergeDiff } from './merge-diff.ts'
export { NotLeaderError } from './not-leader-error.ts'
export { type Change, type Predicate, predicates } from './predicates.ts'
export type { ProbeOptions } from './probe-server.ts'
export { type Reconcile, type ReconcileRequest, type Result, type ShardOfKey, TerminalError } from './reconcile.ts'
export {
  type Buckets,
  bucketCount,
  bucketLabel,
  bucketLabelSelectorOf,
  bucketOf,
  bucketRangesOf,
  isAtRest,
  type LabelOwnedOptions,
  type LabelOwnedResult,
  labeledBucketOf,
  labelOwnedObjects,
  NotOwnerError,
  readShards,
  ringLabel,
  type ShardCounts,
  type ShardMember,
  type ShardOptions,
  type ShardView,
  shardSelectorOf,
  shardViewOf,
} from './sharding/index.ts'
export { type OwnedSource, type WatchSource, watching } from './sources.ts'
export type { Span, Tracer } from './trace.ts'
export {
  addFinalizer,
  applyOwned,
  createOrPatch,
  hasFinalizer,
  patchStatusIfChanged,
  removeFinalizer,
  type WriteOutcome,
} from './write-helpers.ts'
