import { annotations, labels, type RunSpec, runResource, type Stack, stackFinalizer, stackResource, subjectOf } from '../../api/index.ts'
import type { Client, ResourceClient } from '../../kubernetes/client/index.ts'
import { addFinalizer, EventRecorder, patchStatusIfChanged, removeFinalizer } from '../../kubernetes/controller/index.ts'
import { controllerReference, equalJson, isReason, type KubeObject, rfc3339, StatusError } from '../../kubernetes/object/index.ts'
import type { StackEvent } from './conditions.ts'
import type { StackDecision } from './decision.ts'
import { isNamespaceTerminating } from './namespace-terminating.ts'
import type { PlaceNewRun } from './place-new-run.ts'
import { stackLabel } from './run-name.ts'
import type { StackBody } from './watch-predicates.ts'

export type DecisionExecutorOptions = {
  /** Sends the events, which no decision reads. */
  readonly eventClient: Client
  /** Deletes the stored data of a deleted Stack. */
  readonly removeStackData: ((stack: { namespace: string; name: string; uid: string }) => Promise<void>) | undefined
  /** Places a Run that is about to be created; undefined if it has to be queued. */
  readonly placeNewRun: PlaceNewRun | undefined
  readonly nowMs: () => number
}

/** The caches lagged behind the server when the decision was made: decide again. */
export class OutdatedDecisionError extends Error {
  /** The version of the Stack that the server no longer has; undefined when a Run was newer than the cache. */
  readonly stackVersion: string | undefined

  constructor(message: string, stackVersion?: string) {
    super(message)
    this.stackVersion = stackVersion
  }
}

/** The server rejects a new Run, for example because of a quota or an admission policy. */
export class RunRejectedError extends Error {}

/** Invalid, forbidden, or too large: the same request is rejected until a user changes something. */
const rejectedCodes = [400, 403, 413, 422]

/**
 * Executes decisions in an order that survives a crash after each step. A process that no longer owns the Stack may still finish
 * the write it had begun (invariant 7). Therefore each write is rejected if the decision is outdated, or is the same for every process:
 * - finalizer and status of the Stack, superseding and canceling a Run: with the resourceVersion that the decision saw;
 * - creating a Run: its name follows from the Stack and the number of the Run;
 * - removing the stored data of a Stack: by uid, and only of one that is being deleted and has no resources left, which is final;
 * - deleting a Run: by uid, and only one that had ended, which is final, and whose result is in the status on the server.
 */
export class DecisionExecutor {
  readonly #options: DecisionExecutorOptions
  readonly #events: EventRecorder

  constructor(options: DecisionExecutorOptions) {
    this.#options = options
    this.#events = new EventRecorder({ client: options.eventClient, component: 'oarlock-stack' })
  }

  /**
   * @param client refuses writes while this process does not own the Stack; its writes are in the caches before they return.
   * @returns the Stack after the writes.
   * @throws {OutdatedDecisionError} when the Stack or a Run has changed since the decision was made. {RunRejectedError} when the server rejects the new Run.
   */
  async execute(client: Client, stack: Stack, decision: StackDecision): Promise<Stack> {
    try {
      return await this.#execute(client, stack, decision)
    } catch (error) {
      throw isReason(error, 'Conflict') ? new OutdatedDecisionError((error as Error).message) : error
    }
  }

  async #execute(client: Client, stack: Stack, decision: StackDecision): Promise<Stack> {
    const recorded = decision.completeImport === undefined ? stack : await this.#recordImport(client, stack, decision.completeImport)
    let present = decision.addFinalizer
      ? await this.#writeStack(client, recorded, stacks => addFinalizer(stacks, recorded, stackFinalizer))
      : recorded
    if (decision.supersedeRun) await this.#supersede(client, stack, decision.supersedeRun)
    if (decision.createRun) await this.#create(client, present, decision.createRun)
    if (decision.cancelRun) await this.#cancel(client, stack, decision.cancelRun)
    if (decision.removeFinalizer) return await this.#release(client, present, decision.events)

    if (!equalJson(present.status ?? {}, decision.status)) {
      const before = present
      present = await this.#writeStack(client, before, stacks => patchStatusIfChanged(stacks, before, decision.status))
    }
    // Events are sent and Runs deleted only after the status that includes them is written.
    this.#recordEvents(stack, decision.events)
    await Promise.all(decision.deleteRuns.map(run => this.#delete(client, stack, run)))
    return present
  }

  async #recordImport(client: Client, stack: Stack, lineage: string): Promise<Stack> {
    const { name, namespace, resourceVersion } = stack.metadata
    const patch = { metadata: { annotations: { [annotations.importedState]: lineage } } }
    return await this.#writeStack(client, stack, stacks => stacks.patch(name, patch, { type: 'merge', namespace, resourceVersion }))
  }

  async #release(client: Client, stack: Stack, events: readonly StackEvent[]): Promise<Stack> {
    this.#recordEvents(stack, events)
    if (stack.spec.deletion !== 'Orphan') {
      const { namespace = '', name, uid } = stack.metadata
      await this.#options.removeStackData?.({ namespace, name, uid })
    }
    return await this.#writeStack(client, stack, stacks => removeFinalizer(stacks, stack, stackFinalizer))
  }

  async #writeStack(
    client: Client,
    stack: Stack,
    write: (stacks: ResourceClient<StackBody>) => Promise<KubeObject<StackBody>>,
  ): Promise<Stack> {
    try {
      return (await write(client.resource(stackResource))) as Stack
    } catch (error) {
      throw isReason(error, 'Conflict') ? new OutdatedDecisionError((error as Error).message, stack.metadata.resourceVersion) : error
    }
  }

  #recordEvents(stack: Stack, events: readonly StackEvent[]): void {
    for (const { type, reason, message } of events) this.#events.record(stack, type, reason, message)
  }

  async #create(client: Client, stack: Stack, { name, spec }: { name: string; spec: RunSpec }): Promise<void> {
    const runs = client.resource(runResource)
    const { namespace = '' } = stack.metadata
    const owner = controllerReference({ ...stack, apiVersion: stackResource.apiVersion, kind: stackResource.kind })
    const metadata = { name, namespace, labels: { [labels.stack]: stackLabel(stack.metadata.name) }, ownerReferences: [owner] }
    const { finalizers, settle, ...assignment } = this.#options.placeNewRun?.({ namespace, name, spec }) ?? {}
    let isCreated = false
    try {
      await runs.create({ metadata: { ...metadata, ...(finalizers && { finalizers: [...finalizers] }) }, spec: { ...spec, ...assignment } })
      isCreated = true
      return
    } catch (error) {
      if (isRejected(error)) throw new RunRejectedError(error.message, { cause: error })
      if (!isReason(error, 'AlreadyExists')) throw error
    } finally {
      settle?.(isCreated)
    }
    const existing = await runs.getOrUndefined(name, { namespace })
    // One of this Stack: a previous process created it and crashed, and the watch delivers it.
    if (existing && subjectOf(existing).uid !== stack.metadata.uid) await this.#skipNumber(client, stack, spec.epoch, name)
    throw new OutdatedDecisionError(`run ${name} already exists`)
  }

  /** A Stack with the same first 40 characters and first 5 of the uid has a Run of this name: skip the number. */
  async #skipNumber(client: Client, stack: Stack, number: number, name: string): Promise<void> {
    const skipped = { name, type: 'Apply', phase: 'Canceled', reason: 'NameTaken', finishedAt: rfc3339(this.#options.nowMs()) }
    const status = { ...stack.status, lastRunNumber: number, lastRun: skipped }
    await this.#writeStack(client, stack, stacks => patchStatusIfChanged(stacks, stack, status))
  }

  /** Fails with Conflict if the Run was assigned to a Worker meanwhile: then it runs, and the decision is made again. */
  async #supersede(client: Client, stack: Stack, { name, resourceVersion, by }: NonNullable<StackDecision['supersedeRun']>): Promise<void> {
    const status = {
      phase: 'Canceled',
      reason: 'Superseded',
      message: `superseded by Run ${by} before it was assigned to a worker`,
      supersededBy: by,
      finishedAt: rfc3339(this.#options.nowMs()),
      queuePosition: null,
    }
    const { namespace } = stack.metadata
    await client.resource(runResource).patchStatus(name, { status }, { namespace, resourceVersion })
  }

  /** Fails with Conflict if the Run changed meanwhile: then the decision is made again. */
  async #cancel(client: Client, stack: Stack, { name, resourceVersion, reason }: NonNullable<StackDecision['cancelRun']>): Promise<void> {
    const { namespace } = stack.metadata
    const patch = { spec: { cancel: true, ...(reason && { cancelReason: reason }) } }
    try {
      await client.resource(runResource).patch(name, patch, { type: 'merge', namespace, resourceVersion })
    } catch (error) {
      if (!isReason(error, 'NotFound')) throw error
    }
  }

  async #delete(client: Client, stack: Stack, { name, uid }: StackDecision['deleteRuns'][number]): Promise<void> {
    const { namespace } = stack.metadata
    try {
      await client.resource(runResource).delete(name, { namespace, preconditions: { uid } })
    } catch (error) {
      if (!isReason(error, 'NotFound', 'Conflict')) throw error
    }
  }
}

const isRejected = (error: unknown): error is StatusError =>
  error instanceof StatusError && rejectedCodes.includes(error.code) && !isNamespaceTerminating(error)
