import { defaults, type Run, runResource, type Stack, stackResource, subjectOf } from '../../api/index.ts'
import { type Client, namespaceResource } from '../../kubernetes/client/index.ts'
import {
  type Controller,
  controller,
  type Informer,
  type Manager,
  type ReconcileRequest,
  type Result,
  watching,
} from '../../kubernetes/controller/index.ts'
import { objectKey, parseDuration, type StatusCause } from '../../kubernetes/object/index.ts'
import { exponentialDelayMs, type TokenRate } from '../../kubernetes/util/index.ts'
import { withConditions } from './conditions.ts'
import { queuedReportRate, rejectedRunBackoff } from './constants.ts'
import { decideStack } from './decide-stack.ts'
import type { StackDecision } from './decision.ts'
import { DecisionExecutor, OutdatedDecisionError, RunRejectedError } from './decision-executor.ts'
import { configMapResource, InputReader, secretResource } from './input-reader.ts'
import { withoutValues } from './inputs-digest.ts'
import { isNamespaceTerminating, namespaceTerminating } from './namespace-terminating.ts'
import { rejectedRunConditions } from './outlook-conditions.ts'
import type { Attempts } from './persistent-failure.ts'
import type { PlaceNewRun } from './place-new-run.ts'
import { QueuedReports } from './queued-reports.ts'
import { type CheckState, type StateCheckRate, StateChecks } from './state-checks.ts'
import {
  hasApprovalPolicyChanged,
  haveKeysChanged,
  isRelevantToItsStack,
  isRelevantToRelatedStacks,
  needsReconcile,
  type StackBody,
} from './watch-predicates.ts'

export type StackControllerOptions = {
  /** Resolves the current revision of a Stack's source; rejects with `{ reason, message, retryable }`. */
  resolveRevision(stack: Stack): Promise<string>
  /** Errors in a Stack's source that can be found without reading it. */
  checkSource(stack: Stack): StatusCause[]
  /** Reads from the stores whether they have the state that the last Run left. Default: only the stores check it, when a Run starts. */
  checkState?: CheckState | undefined
  /** How often `checkState` is called for Stacks that need no Run. Default: once by each process. */
  stateCheckRate?: StateCheckRate | undefined
  /** Deletes the stored data (states, plans) of a deleted Stack. Not called for `deletion: Orphan`, which keeps the resources. */
  removeStackData?(stack: { namespace: string; name: string; uid: string }): Promise<void>
  /** Places Runs that are about to be created. Default: all are created without a worker and assigned later. */
  placeNewRun?: PlaceNewRun
  /** How long an approval is valid, in milliseconds. Default 24 hours. */
  approvalTimeoutMs?: number | undefined
  /** How often this process reports that the Run of a Stack waits. Default: 5 per second, and 100 at the same time. */
  queuedReportRate?: TokenRate | undefined
  /** Wall clock in milliseconds. */
  nowMs?: () => number
  /** Maximum number of concurrent reconciles, most of which wait for a write; default 64. */
  maxConcurrent?: number
}

/** Delay before the next reconcile when the caches lagged behind the server. */
const staleCacheRetryMs = 20

/**
 * Adds the controller that creates Runs for Stacks and writes their status. In a manager with `shards` each process works on the Stacks of its own
 * buckets. What it reads of other Stacks, and all Runs, come from caches of everything, which dispatch in the same process has anyway.
 */
export function addStackController(manager: Manager, options: StackControllerOptions): void {
  manager.add(new StackReconciler(manager, options).controller)
}

/** The shell around {@link decideStack}: reads its input, and executes what it decides. */
class StackReconciler {
  readonly controller: Controller
  readonly #reader: InputReader
  readonly #executor: DecisionExecutor
  readonly #nowMs: () => number
  readonly #states: StateChecks
  /** The Stacks that this process works on. One that another process takes over is deleted from it, and with it what is remembered here. */
  readonly #stacks: Informer<StackBody>
  /** Uids of Stacks whose finalizer was removed and that are still in the cache: nothing is left to do for them. */
  readonly #released = new Set<string>()
  /** By key: the resourceVersion at which a write to the Stack conflicted, until the cache has a newer one. */
  readonly #conflictedAt = new Map<string, string>()
  readonly #queuedReports: QueuedReports
  /** By key: Stacks whose next Run the server rejects. */
  readonly #rejections = new Map<string, Attempts>()

  constructor(manager: Manager, options: StackControllerOptions) {
    this.#nowMs = options.nowMs ?? Date.now
    this.#states = new StateChecks(options.checkState, { rate: options.stateCheckRate })
    this.#stacks = manager.informer(stackResource, { sharded: manager.shards && 'root' })
    const reader = new InputReader(manager, {
      stacks: this.#stacks,
      resolveRevision: stack => options.resolveRevision(stack),
      checkSource: stack => options.checkSource(stack),
      onRevisionResolved: stack => this.controller.enqueue(objectKey(stack)),
      nowMs: this.#nowMs,
      approvalTimeoutMs: options.approvalTimeoutMs ?? parseDuration(defaults.approvalTimeout),
    })
    this.#reader = reader
    this.#executor = new DecisionExecutor({
      eventClient: manager.shards ? manager.client : manager.leaderClient,
      removeStackData: options.removeStackData && (stack => options.removeStackData!(stack)),
      placeNewRun: options.placeNewRun,
      nowMs: this.#nowMs,
    })
    this.#queuedReports = new QueuedReports({
      rate: options.queuedReportRate ?? queuedReportRate,
      reconcile: key => this.controller.enqueue(key),
      nowMs: () => performance.now(),
      schedule: (action, ms) => void setTimeout(action, ms).unref(),
    })
    const inputs = { predicate: haveKeysChanged, informer: { transform: withoutValues } }
    this.controller = controller({
      name: 'stack',
      for: stackResource,
      predicates: [needsReconcile],
      watches: [
        watching(runResource, run => [stackKeyOf(run)], { predicate: isRelevantToItsStack }),
        watching(stackResource, stack => reader.relatedStacks(stack), { predicate: isRelevantToRelatedStacks }),
        watching(secretResource, secret => reader.usersOf('secret', secret), inputs),
        watching(namespaceResource, namespace => reader.stacksIn(namespace), { predicate: hasApprovalPolicyChanged }),
        watching(configMapResource, configMap => reader.usersOf('configMap', configMap), inputs),
      ],
      maxConcurrent: options.maxConcurrent ?? 64,
      backoff: { maxDelayMs: 30_000 },
      reconcile: request => this.#reconcile(request),
    })
    this.#stacks.onChange({
      deleted: ({ metadata }) => {
        this.#released.delete(metadata.uid)
        this.#states.delete(metadata.uid)
        this.#conflictedAt.delete(objectKey({ metadata }))
        this.#rejections.delete(objectKey({ metadata }))
        this.#queuedReports.delete(objectKey({ metadata }))
      },
    })
  }

  async #reconcile({ key, client }: ReconcileRequest): Promise<Result> {
    const stack = this.#stacks.get(key)
    if (!stack || this.#released.has(stack.metadata.uid)) return
    // A write would conflict again.
    if (this.#conflictedAt.get(key) === stack.metadata.resourceVersion) return { requeueAfterMs: staleCacheRetryMs }
    this.#conflictedAt.delete(key)
    const { input, recheckAfterMs } = await this.#reader.read(stack, client)
    const mayReportQueued = this.#queuedReports.mayReport(key)
    const decision = await this.#states.decide({ ...input, mayReportQueued }, decideStack)
    try {
      if (!(await this.#execute(client, key, stack, decision))) return { requeueAfterMs: staleCacheRetryMs }
    } catch (error) {
      if (error instanceof RunRejectedError) return await this.#reportRejection(client, key, stack, error)
      if (!isNamespaceTerminating(error)) throw error
      // The deletion of a namespace cannot be undone: only a change of the Stack helps, and the watch reports it.
      const present = this.#stacks.get(key) ?? stack
      const isDone = await this.#execute(client, key, present, { ...namespaceTerminating(present, this.#nowMs()), deleteRuns: [] })
      return isDone ? undefined : { requeueAfterMs: staleCacheRetryMs }
    }
    this.#rejections.delete(key)
    if (decision.isQueuedReportDue) this.#queuedReports.add(key)
    else this.#queuedReports.delete(key)
    const delays = [decision.requeueAfterMs, recheckAfterMs].filter(ms => ms !== undefined)
    return delays.length > 0 ? { requeueAfterMs: Math.min(...delays) } : undefined
  }

  /** Otherwise the Stack would keep the status of its previous generation. */
  async #reportRejection(client: Client, key: string, stack: Stack, { message }: RunRejectedError): Promise<Result> {
    const lastMs = this.#nowMs()
    const { count, sinceMs } = this.#rejections.get(key) ?? { count: 0, sinceMs: lastMs }
    const attempts = { count: count + 1, sinceMs, lastMs }
    this.#rejections.set(key, attempts)
    const requeueAfterMs = exponentialDelayMs(attempts.count, rejectedRunBackoff)
    const present = this.#stacks.get(key) ?? stack
    const update = rejectedRunConditions(message, attempts, lastMs + requeueAfterMs)
    const isDone = await this.#execute(client, key, present, { ...withConditions(present, update, lastMs), deleteRuns: [] })
    return { requeueAfterMs: isDone ? requeueAfterMs : staleCacheRetryMs }
  }

  /** False when the decision is outdated: decide again when the watch has delivered the current objects, which takes milliseconds. */
  async #execute(client: Client, key: string, stack: Stack, decision: StackDecision): Promise<boolean> {
    try {
      const { metadata } = await this.#executor.execute(client, stack, decision)
      // With finalizers of others the object still exists.
      if (decision.removeFinalizer && !metadata.finalizers?.length && this.#stacks.has(key)) this.#released.add(metadata.uid)
      return true
    } catch (error) {
      if (!(error instanceof OutdatedDecisionError)) throw error
      if (error.stackVersion !== undefined) this.#conflictedAt.set(key, error.stackVersion)
      return false
    }
  }
}

function stackKeyOf(run: Pick<Run, 'metadata' | 'spec'>): string {
  const { namespace, name } = subjectOf(run)
  return `${namespace}/${name}`
}
