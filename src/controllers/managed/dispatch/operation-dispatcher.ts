/** Starts operations of resources as Runs, and reads what became of them: the thin part around `decide-operation.ts`. */
import { labels, type Run, runResource, type Stack, type StackSpec, stackResource } from '../../../api/index.ts'
import type { Json, JsonObject } from '../../../kubernetes/object/index.ts'
import { annotations } from '../annotations.ts'
import type { Change, ConnectionDetails, ManagedBody, Observation } from '../managed-object.ts'
import type { ExternalRequest, ManagedOptions } from '../managed-options.ts'
import { decideOperation, type OperationState } from './decide-operation.ts'
import type { DispatchOptions } from './dispatch-options.ts'
import type { Operation, OperationKind, OperationVariables } from './operation.ts'
import { OwnedStacks } from './owned-stacks.ts'
import { plainSpec, stackAnnotations } from './stack-marks.ts'
import { adoptStack, foreignStack, ownershipOf, suspendStack } from './stack-ownership.ts'
import { outputsOf } from './stack-reads.ts'

/** What is known of the operations of a resource; `change` is what a successful one returned. */
export type ReadOperation = { readonly operation: OperationState | undefined; readonly change?: Change | undefined }

export class OperationDispatcher<Body extends ManagedBody> {
  readonly #dispatch: DispatchOptions<Body>
  readonly #options: ManagedOptions<Body, never, never>
  readonly #stacks: OwnedStacks<Body>

  /** @throws {TypeError} {RangeError} naming the option that is wrong. */
  constructor(options: ManagedOptions<Body, never, never>, dispatch: DispatchOptions<Body>) {
    const { kind } = options
    this.#stacks = new OwnedStacks(kind, dispatch.stackName)
    if (dispatch.program.length === 0) throw new RangeError(`dispatch.program of managed kind ${kind.kind} must have at least one entry`)
    this.#dispatch = dispatch
    this.#options = options
  }

  /** What reconciles a resource when its Stack or a Run of it changes. */
  get sources() {
    return this.#stacks.sources
  }

  async read(request: ExternalRequest<Body>): Promise<ReadOperation> {
    const stack = await this.#find(request)
    return stack ? await this.#stateOf(stack, request) : { operation: undefined }
  }

  /**
   * Starts an operation, unless one is active or its result was not acted on: then that is returned.
   * @throws {StatusError} Conflict if the Stack changed meanwhile: then nothing was started.
   */
  async start(
    kind: OperationKind,
    request: ExternalRequest<Body>,
    observation: Observation | undefined,
    failures: number,
  ): Promise<ReadOperation> {
    const { client, signal, object, fence, externalName } = request
    const stack = await this.#find(request)
    const runs = stack ? await this.#runsOf(stack, request) : []
    const present = stack && decideOperation(stack, runs)
    if (stack && present && (present.outcome.kind === 'active' || !present.isHandled)) return await this.#stateOf(stack, request)
    const operation: Operation = {
      kind,
      number: Math.max(stack?.status?.lastRunNumber ?? 0, ...runs.map(({ spec }) => spec.epoch)) + 1,
      isRepeatable: kind !== 'create' || this.#options.hasDeterministicNames === true,
      ...(kind === 'create' && { mark: object.metadata.annotations?.[annotations.createPending] }),
      externalName,
      generation: object.metadata.generation ?? 0,
      failures,
      fence,
    }
    const { connectionDetails: _, ...observed } = observation ?? { exists: false }
    const variables = await this.#dispatch.variables?.(request)
    const spec = this.#specFor(operation, { operation, object: object as unknown as JsonObject, observation: observed, variables })
    const written = stack
      ? await client.resource(stackResource).update({ ...stack, spec }, { signal })
      : await this.#stacks.create(request, spec)
    return { operation: decideOperation(written, runs) }
  }

  /** Records that the result of the operation was acted on. */
  async finish({ operation }: OperationState, request: ExternalRequest<Body>): Promise<void> {
    const { client, signal, object } = request
    const change = { metadata: { annotations: { [stackAnnotations.handledOperation]: String(operation.number) } } }
    const { namespace } = object.metadata
    await client.resource(stackResource).patch(this.#stacks.nameOf(object), change, { type: 'merge', namespace, signal })
  }

  /** While the resource is paused no further Run of an operation starts. */
  async pause(request: ExternalRequest<Body>): Promise<void> {
    const { client, signal, object } = request
    const stack = await this.#stacks.find(request)
    if (!stack || ownershipOf(stack, object) !== 'own') return
    if (decideOperation(stack, [])?.outcome.kind === 'active') await suspendStack(client, stack, 'Paused', signal)
  }

  forget(key: string): void {
    this.#stacks.forget(key)
  }

  async #find(request: ExternalRequest<Body>): Promise<Stack | undefined> {
    const { client, object, signal } = request
    const stack = await this.#stacks.find(request)
    if (!stack) return undefined
    if (ownershipOf(stack, object) !== 'own') throw foreignStack(stack, object)
    this.#stacks.remember(stack, object)
    const isPaused = stack.metadata.annotations?.[stackAnnotations.suspended] !== undefined
    return isPaused ? await adoptStack(client, stack, object, signal) : stack
  }

  async #stateOf(stack: Stack, request: ExternalRequest<Body>): Promise<ReadOperation> {
    const operation = decideOperation(stack, await this.#runsOf(stack, request))
    if (operation?.outcome.kind !== 'succeeded' || operation.isHandled) return { operation }
    return { operation, change: changeOf(await outputsOf(request.client, stack, request.signal)) }
  }

  async #runsOf({ metadata }: Stack, { client, signal }: ExternalRequest<Body>): Promise<Run[]> {
    const { name, namespace, uid } = metadata
    // The label has at most 63 characters of the name; the UID decides.
    const labelSelector = name.length <= 63 ? `${labels.stack}=${name}` : undefined
    const { items } = await client.resource(runResource).listAll({ namespace, labelSelector, signal })
    return items.filter(({ spec }) => spec.stackRef.uid === uid)
  }

  #specFor(operation: Operation, variables: OperationVariables): StackSpec {
    const { operations: _, program, source, variables: _v, stackName: _n, retry, ...fields } = this.#dispatch
    return plainSpec({
      ...fields,
      engine: 'command',
      source: source ?? { inline: { files: { [operation.kind]: `${operation.number}\n` } } },
      command: { apply: [...program] },
      variables: variables as unknown as Record<string, unknown>,
      // Nothing is repeated that must not be; a Run that was lost is recovered, and refuses.
      retry: operation.isRepeatable ? retry : { limit: 0 },
      approval: 'Auto',
      drift: 'Off',
      // The deletion of the external resource is an operation. The Stack itself has nothing to destroy.
      deletion: 'Orphan',
    })
  }
}

/** What the program of the provider wrote as outputs. */
function changeOf(outputs: Readonly<Record<string, Json>> | undefined): Change {
  const { externalName, connectionDetails, details, atProvider } = outputs ?? {}
  return {
    ...(typeof externalName === 'string' && { externalName }),
    ...(typeof connectionDetails === 'object' &&
      connectionDetails && { connectionDetails: decoded(connectionDetails as Record<string, string>) }),
    ...(typeof atProvider === 'object' && atProvider && { atProvider }),
    ...(typeof details === 'object' && details && { details: details as Record<string, string> }),
  }
}

const decoded = (details: Readonly<Record<string, string>>): ConnectionDetails =>
  Object.fromEntries(Object.entries(details).map(([key, value]) => [key, Buffer.from(value, 'base64')]))
