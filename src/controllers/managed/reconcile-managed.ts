/** Executes the steps of `decide-step.ts` for one object: the thin part that calls the API server and the author's functions. */
import type { Client, ResourceClient } from '../../kubernetes/client/index.ts'
import {
  addFinalizer,
  coerceError,
  EventRecorder,
  NotLeaderError,
  NotOwnerError,
  patchStatusIfChanged,
  type ReconcileRequest,
  type Result,
  removeFinalizer,
} from '../../kubernetes/controller/index.ts'
import { isReason, type JsonObject, type KubeObject, setCondition } from '../../kubernetes/object/index.ts'
import { annotations, externalNameOf, requestTokenOf } from './annotations.ts'
import { publishToSecret } from './connection-secret.ts'
import { decideStep, managedFinalizer } from './decide-step.ts'
import type { OperationKind } from './dispatch/operation.ts'
import { OperationDispatcher } from './dispatch/operation-dispatcher.ts'
import { type ManagedMetrics, managedMetricsOn, noManagedMetrics } from './managed-metrics.ts'
import type { Change, ManagedBody, ManagedObject, Observation } from './managed-object.ts'
import type { ExternalRequest, ManagedOptions } from './managed-options.ts'
import { resolveReferences } from './references.ts'
import type { End, Facts, Failure, Settings, Step } from './step.ts'
import { hasUnknownOutcome } from './unknown-outcome-error.ts'

/** The right to work on a resource until its signal aborts. */
export type Hold = {
  /** Aborts before another process may hold it. */
  readonly signal: AbortSignal
  readonly fence?: number | undefined
  /** @throws {NotOwnerError} if it is not held at this instant, also immediately after the process was stopped for a while. */
  check(): void
}

/** How long the status and the result of a creation may take to write, after the external calls. */
export const writeGraceMs = 30_000

/** A step that does something. */
type Action = Exclude<Step, End>

export class ManagedReconciler<Body extends ManagedBody, Connection, State> {
  readonly #options: ManagedOptions<Body, Connection, State>
  readonly #settings: Settings
  readonly #name: string
  readonly #dispatcher: OperationDispatcher<Body> | undefined
  readonly #recorders = new WeakMap<Client, EventRecorder>()
  readonly #metrics: Promise<ManagedMetrics>
  #loaded: ManagedMetrics | undefined

  constructor(options: ManagedOptions<Body, Connection, State>) {
    this.#options = options
    this.#name = options.name ?? options.kind.plural
    const { dispatch } = options
    this.#dispatcher = dispatch && new OperationDispatcher<Body>(options as unknown as ManagedOptions<Body, never, never>, dispatch)
    this.#settings = {
      hasDeterministicNames: options.hasDeterministicNames ?? false,
      assignsExternalNames: options.externalNames === 'assigned',
      hasReferences: (options.references?.length ?? 0) > 0,
      pauses: options.pause !== undefined || options.dispatch !== undefined,
      dispatched: new Set(options.dispatch?.operations),
      pollIntervalMs: options.pollIntervalMs ?? 60_000,
      minimumPollIntervalMs: options.minimumPollIntervalMs ?? 1_000,
      creationGraceMs: options.creationGraceMs ?? 30_000,
      deletionCheckMs: options.deletionCheckMs ?? 2_000,
    }
    this.#metrics = options.registry ? managedMetricsOn(options.registry, options.kind) : Promise.resolve(noManagedMetrics)
  }

  /** Other kinds whose changes reconcile a resource. */
  get sources(): Pick<ManagedOptions<Body>, 'owns' | 'watches'> {
    const { owns = [], watches = [] } = this.#options
    const { sources } = this.#dispatcher ?? {}
    return { owns: [...owns, ...(sources?.owns ?? [])], watches: [...watches, ...(sources?.watches ?? [])] }
  }

  /** One reconcile; `hold` is the right to do it, if a lock gave one. */
  async reconcile(request: ReconcileRequest<Body>, hold?: Hold): Promise<Result> {
    this.#loaded ??= await this.#metrics
    const { object } = request
    if (!object) {
      this.#dispatcher?.forget(request.key)
      return this.#loaded.forget(request.key)
    }
    this.#loaded.reconciled(object, this.#nowMs())
    const pass = new Pass(this.#options, this.#settings, this.#name, request, hold, this.#dispatcher)
    try {
      const end = await pass.run()
      return await this.#finish(pass, end, request)
    } finally {
      await pass.close()
    }
  }

  async #finish(pass: Pass<Body, Connection, State>, end: End, request: ReconcileRequest<Body>): Promise<Result> {
    const metrics = this.#loaded ?? noManagedMetrics
    const { facts, error } = pass
    const nowMs = this.#nowMs()
    if (end.isGone) {
      metrics.deleted(facts.object, nowMs)
      return metrics.forget(request.key)
    }
    // Before the status is written: a conflict there does not undo the update.
    if (facts.done.has('update') && !facts.failure) metrics.updated(facts.object, nowMs)
    const status = nextStatus(facts, end, nowMs)
    // A failure that only the version of the object explains says nothing to people.
    if (status) await patchStatusIfChanged(pass.handle, facts.object as KubeObject<Body>, status as NonNullable<Body['status']>)
    const isPolled = typeof end.requeue === 'object'
    metrics.observed(facts.object, { isReady: end.ready?.status === 'True', isUnchanged: isPolled && !facts.done.has('update') }, nowMs)
    if (end.event) this.#recorder(request.client).record(facts.object, end.event.type, end.event.reason, end.event.message)
    if (end.requeue === 'backoff') throw error ?? new Error(end.synced?.message ?? 'the object changed since it was read')
    return end.requeue === 'never' ? undefined : { requeueAfterMs: end.requeue.afterMs }
  }

  #recorder(client: Client): EventRecorder {
    let recorder = this.#recorders.get(client)
    if (!recorder) {
      recorder = new EventRecorder({ client, component: this.#name })
      this.#recorders.set(client, recorder)
    }
    return recorder
  }

  #nowMs(): number {
    return (this.#options.wallMs ?? Date.now)()
  }
}

/** One way through the sequence. */
class Pass<Body extends ManagedBody, Connection, State> {
  readonly handle: ResourceClient<Body>
  facts: Facts
  /** The first error of a step. */
  error: Error | undefined
  readonly #options: ManagedOptions<Body, Connection, State>
  readonly #settings: Settings
  readonly #name: string
  readonly #request: ReconcileRequest<Body>
  readonly #hold: Hold | undefined
  readonly #dispatcher: OperationDispatcher<Body> | undefined
  readonly #signal: AbortSignal
  readonly #before: ManagedObject
  #connection: { value: Connection } | undefined

  constructor(
    options: ManagedOptions<Body, Connection, State>,
    settings: Settings,
    name: string,
    request: ReconcileRequest<Body>,
    hold: Hold | undefined,
    dispatcher: OperationDispatcher<Body> | undefined,
  ) {
    this.#dispatcher = dispatcher
    this.#options = options
    this.#settings = settings
    this.#name = name
    this.#request = request
    this.#hold = hold
    this.handle = request.client.resource(options.kind)
    const object = request.object as ManagedObject
    this.#before = object
    this.facts = { object, done: new Set(), fence: hold?.fence }
    const signals = [request.signal, AbortSignal.timeout(options.timeoutMs ?? 60_000)]
    if (hold) signals.push(hold.signal)
    this.#signal = AbortSignal.any(signals)
  }

  async run(): Promise<End> {
    const { wallMs = Date.now, random = Math.random } = this.#options
    for (;;) {
      const step = decideStep(this.facts, this.#settings, wallMs(), random())
      if (step.kind === 'end') return step
      if (this.facts.done.has(step.kind)) throw new TypeError(`step ${step.kind} was decided twice in one reconcile`)
      this.facts = await this.#execute(step)
    }
  }

  async close(): Promise<void> {
    if (!this.#connection) return
    try {
      await this.#options.disconnect?.(this.#connection.value)
    } catch (error) {
      this.#request.log.warn({ err: coerceError(error) }, 'disconnect failed')
    }
  }

  async #execute(step: Action): Promise<Facts> {
    const { facts } = this
    const done = new Set(facts.done).add(step.kind)
    try {
      return { ...facts, done, ...(await this.#do(step)) }
    } catch (thrown) {
      const error = coerceError(thrown)
      this.error ??= error
      // The failure to write a mark does not hide why the creation failed.
      if (facts.failure) return { ...facts, done }
      return { ...facts, done, failure: { step: step.kind, message: error.message, kind: this.#kindOf(error) } }
    }
  }

  #kindOf(error: Error): Failure['kind'] {
    if (isReason(error, 'Conflict', ...(this.#dispatcher ? (['AlreadyExists'] as const) : []))) return 'conflict'
    return this.#signal.aborted || hasUnknownOutcome(error) ? 'unknown' : 'failed'
  }

  /** Does one step; what it returns is added to the facts. */
  async #do(step: Action): Promise<Partial<Facts>> {
    const { client } = this.#request
    const options = this.#options
    this.#hold?.check()
    if (!this.#request.isLeading()) throw new NotLeaderError()
    if ('failures' in step && step.failures !== undefined) return await this.#start(step.kind, step.failures)
    switch (step.kind) {
      case 'pause':
        await options.pause?.(this.#external())
        await this.#dispatcher?.pause(this.#external())
        return {}
      case 'set-external-name':
        return this.#patch({ metadata: { annotations: { [annotations.externalName]: step.externalName } } })
      case 'resolve-references': {
        const changes = await resolveReferences(client, this.facts.object, options.references ?? [], this.#signal)
        return changes ? this.#patch({ spec: { forProvider: changes } }) : {}
      }
      case 'connect':
        this.#connection = { value: await options.connect(this.#external()) }
        return {}
      case 'observe': {
        const observation = await this.#call(connection => options.observe(connection, this.#external()))
        const late = observation.exists ? options.lateInitialize?.(observation, this.facts.object as KubeObject<Body>) : undefined
        return { observation, lateInitialized: late && missingFields(this.facts.object, late) }
      }
      case 'publish-observed':
        return await this.#publish(this.facts.observation?.connectionDetails)
      case 'publish-changed':
        return await this.#publish(this.facts.change?.connectionDetails)
      case 'unpublish': {
        await options.unpublish?.(this.#external())
        return {}
      }
      case 'add-finalizer':
        return { object: await addFinalizer(this.handle, this.facts.object as KubeObject<Body>, managedFinalizer) }
      case 'remove-finalizer':
        return { object: await removeFinalizer(this.handle, this.facts.object as KubeObject<Body>, managedFinalizer) }
      case 'mark-pending':
        return await this.#patch({ metadata: { annotations: step.annotations } })
      case 'mark-result':
        return { object: await this.#mark(step.annotations) }
      case 'read-operation':
        return (await this.#dispatcher?.read(this.#external())) ?? {}
      case 'finish-operation':
        return await this.#finishOperation()
      case 'create':
        return { change: await this.#change('CREATE', connection => options.create(connection, this.#external())) }
      case 'update':
        return { change: await this.#change('UPDATE', connection => options.update(connection, this.#external(), this.#observation())) }
      case 'delete':
        await this.#change('DELETE', connection => options.delete(connection, this.#external(), this.#observation()))
        return {}
      case 'late-initialize':
        return await this.#patch({ spec: { forProvider: step.fields } })
    }
  }

  async #start(kind: OperationKind, failures: number): Promise<Partial<Facts>> {
    return (await this.#dispatcher?.start(kind, this.#external(), this.facts.observation, failures)) ?? {}
  }

  async #finishOperation(): Promise<Partial<Facts>> {
    const { operation: state, change } = this.facts
    if (!state) return {}
    const { kind } = state.operation
    const message = 'message' in state.outcome ? state.outcome.message : undefined
    await this.#log(kind.toUpperCase() as 'CREATE' | 'UPDATE' | 'DELETE', message, change)
    await this.#dispatcher?.finish(state, this.#external())
    return {}
  }

  /** A conditional write: a conflict means that this pass was decided from an outdated object. */
  async #patch(change: object): Promise<Partial<Facts>> {
    const { name, namespace, resourceVersion } = this.facts.object.metadata
    return { object: await this.handle.patch(name, change, { type: 'merge', namespace, resourceVersion }) }
  }

  /** Writes the result of a creation, whatever else changed meanwhile: only these annotations, and only of this object. */
  async #mark(marks: Readonly<Record<string, string>>): Promise<ManagedObject> {
    const { name, namespace, uid } = this.facts.object.metadata
    const untilMs = performance.now() + writeGraceMs
    for (let delayMs = 50; ; delayMs *= 2) {
      try {
        return await this.handle.patch(name, { metadata: { uid, annotations: marks } }, { type: 'merge', namespace })
      } catch (error) {
        const isFinal = isReason(error, 'NotFound', 'Invalid', 'Forbidden', 'Unauthorized') || error instanceof NotOwnerError
        if (isFinal || performance.now() + delayMs > untilMs) throw error
        await new Promise(resolve => setTimeout(resolve, delayMs))
      }
    }
  }

  async #change<T>(operation: 'CREATE' | 'UPDATE' | 'DELETE', call: (connection: Connection) => Promise<T>): Promise<Change | undefined> {
    try {
      const change = ((await this.#call(call)) ?? undefined) as Change | undefined
      await this.#log(operation, undefined, change)
      return change
    } catch (error) {
      await this.#log(operation, coerceError(error).message, undefined)
      throw error
    }
  }

  async #log(operation: 'CREATE' | 'UPDATE' | 'DELETE', errorMessage: string | undefined, change: Change | undefined): Promise<void> {
    const { changeLog, wallMs = Date.now } = this.#options
    if (!changeLog) return
    const { apiVersion, kind, metadata } = this.#before
    try {
      await changeLog({
        timestamp: new Date(wallMs()).toISOString(),
        provider: this.#name,
        apiVersion,
        kind,
        name: metadata.name,
        namespace: metadata.namespace,
        externalName: change?.externalName ?? externalNameOf(this.facts.object) ?? '',
        operation,
        snapshot: this.#before,
        errorMessage,
        additionalDetails: change?.details ?? {},
      })
    } catch (error) {
      this.#request.log.warn({ err: coerceError(error), operation }, 'the change log did not accept an entry')
    }
  }

  /** Calls the external system if this process may do so at this instant. */
  async #call<T>(call: (connection: Connection) => Promise<T>): Promise<T> {
    this.#signal.throwIfAborted()
    return await call((this.#connection as { value: Connection }).value)
  }

  async #publish(details: Observation['connectionDetails']): Promise<Partial<Facts>> {
    if (!details) return {}
    if (this.#options.publish) await this.#options.publish(details, this.#external())
    else await publishToSecret(this.#request.client, this.facts.object, details)
    return {}
  }

  #observation(): Observation<State> {
    return this.facts.observation as Observation<State>
  }

  #external(): ExternalRequest<Body> {
    const { client, log } = this.#request
    const object = this.facts.object as KubeObject<Body>
    return { object, externalName: externalNameOf(object), signal: this.#signal, fence: this.#hold?.fence, client, log }
  }
}

/** The status to write; undefined if the end has none. */
function nextStatus({ object, observation, change, operation }: Facts, { synced, ready }: End, nowMs: number): ManagedBody['status'] {
  if (!synced && !ready) return undefined
  const { generation } = object.metadata
  let conditions = object.status?.conditions
  for (const part of [ready && { type: 'Ready', ...ready }, synced && { type: 'Synced', ...synced }]) {
    if (part) conditions = setCondition(conditions, { ...part, ...(generation !== undefined && { observedGeneration: generation }) }, nowMs)
  }
  const token = requestTokenOf(object)
  const run = operation?.run ?? observation?.run
  return {
    ...object.status,
    ...((observation?.atProvider || change?.atProvider) && {
      atProvider: { ...((observation?.atProvider ?? object.status?.atProvider) as object | undefined), ...change?.atProvider },
    }),
    ...(run && { run }),
    ...(generation !== undefined && { observedGeneration: generation }),
    // Not while paused: the request is handled when it is acted on.
    ...(token && synced?.reason !== 'ReconcilePaused' && { lastHandledReconcileAt: token }),
    conditions,
  }
}

/** The fields of `found` that `spec.forProvider` lacks, at any depth; undefined if none. */
export function missingFields(object: ManagedObject, found: JsonObject): JsonObject | undefined {
  const wanted = (object.spec?.forProvider ?? {}) as JsonObject
  return missing(wanted, found)
}

function missing(wanted: JsonObject, found: JsonObject): JsonObject | undefined {
  const result: JsonObject = {}
  for (const [field, value] of Object.entries(found)) {
    const mine = wanted[field]
    if (mine === undefined) result[field] = value
    else if (isRecord(mine) && isRecord(value)) {
      const nested = missing(mine, value)
      if (nested) result[field] = nested
    }
  }
  return Object.keys(result).length > 0 ? result : undefined
}

const isRecord = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value)
