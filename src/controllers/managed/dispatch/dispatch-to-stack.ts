/** Managed resources whose external resource is a Stack: each change is a Run, executed by a worker. */
import { formatRunRequest, annotations as oarlockAnnotations, type Stack, type StackSpec, stackResource } from '../../../api/index.ts'
import { isConditionTrue, isReason, type Json, type KubeObject, objectKey } from '../../../kubernetes/object/index.ts'
import { requestTokenOf } from '../annotations.ts'
import type { ConnectionDetails, ManagedBody, ManagedObject, Observation } from '../managed-object.ts'
import type { ExternalRequest, ManagedOptions } from '../managed-options.ts'
import { knownProblem, observeStack } from './observe-stack.ts'
import { OwnedStacks } from './owned-stacks.ts'
import { digestOf, hasWanted, plainSpec, specOver, stackAnnotations } from './stack-marks.ts'
import { adoptStack, foreignStack, orphanStack, ownershipOf, suspendStack } from './stack-ownership.ts'
import { activeRun, outputsOf } from './stack-reads.ts'

/** What an observation passes on to the update and the deletion. */
export type DispatchedState = { readonly stack: Stack; readonly wanted: StackSpec | undefined; readonly request: string | undefined }

type OwnOptions = 'connect' | 'disconnect' | 'observe' | 'create' | 'update' | 'delete' | 'pause' | 'owns' | 'watches' | 'lateInitialize'

export type StackDispatchOptions<Body extends ManagedBody = ManagedBody> = Omit<
  ManagedOptions<Body, undefined, DispatchedState>,
  OwnOptions | 'externalNames' | 'hasDeterministicNames' | 'creationGraceMs'
> & {
  /**
   * The Stack that makes the resource what it should be. Must depend on the request only: a difference from what was written is an update. Not called while the
   * resource is deleted, so that a reference that no longer resolves does not prevent it.
   */
  stack(request: ExternalRequest<Body>): StackSpec | Promise<StackSpec>
  /**
   * Name of the Stack, in the namespace of the resource. Default: `<kind>-<name>`, in lower case. It must never change for an object, and so not depend on annotations:
   * the object would control two Stacks.
   */
  stackName?(object: KubeObject<Body>): string
  /** Whether a Stack that is Ready can be used. Default: true. */
  isReady?(stack: Stack, object: KubeObject<Body>): Observation['ready']
  /** The new `status.atProvider`, for example from `stack.status.outputs`, which has no secret ones. Default: unchanged. */
  atProvider?(stack: Stack, object: KubeObject<Body>): object | undefined
  /** Connection details from all outputs of the Stack, with secret ones. Default: none, and the Secret with the outputs is not read. */
  connectionDetails?(outputs: Readonly<Record<string, Json>>, object: KubeObject<Body>): ConnectionDetails | undefined
}

/**
 * Options for `managed` of a kind whose external resource is a Stack that the resource controls. Long work is done by workers: it blocks no reconcile, and continues while controllers restart.
 * The status follows the Run by a watch, so `pollIntervalMs` (default 600,000) only matters for what no event shows.
 * @throws {TypeError} if the kind is cluster-scoped: a Stack has a namespace.
 */
export function dispatchToStack<Body extends ManagedBody>(
  options: StackDispatchOptions<Body>,
): ManagedOptions<Body, undefined, DispatchedState> {
  const { stack: wantedOf, stackName, isReady, atProvider, connectionDetails, ...rest } = options
  const stacks = new OwnedStacks(options.kind, stackName)

  const wantedFor = async (request: ExternalRequest<Body>) => plainSpec(await wantedOf(request))

  return {
    pollIntervalMs: 600_000,
    // The end of a deletion is seen by the watch.
    deletionCheckMs: 60_000,
    ...rest,
    // The name of the Stack is known before, and the API server is consistent.
    hasDeterministicNames: true,
    creationGraceMs: 1,
    ...stacks.sources,
    connect: async () => undefined,
    async observe(_, request) {
      const { object, client, signal } = request
      let stack = await stacks.find(request)
      let ownership = stack && ownershipOf(stack, object)
      if (stack && ownership === 'foreign') {
        // Its deletion is not this resource's business.
        if (!object.metadata.deletionTimestamp) throw foreignStack(stack, object)
        stack = ownership = undefined
      }
      if (!stack) {
        stacks.forget(objectKey(object))
        return { exists: false }
      }
      const isSuspended = stack.metadata.annotations?.[stackAnnotations.suspended] !== undefined
      if (isSuspended || ownership === 'orphaned') stack = await adoptStack(client, stack, object, signal)
      stacks.remember(stack, object)
      const wanted = object.metadata.deletionTimestamp ? undefined : await wantedFor(request)
      const { ready, problem, run } = observeStack(stack, await activeRun(client, stack, signal), knownProblem(object))
      const again = requestedRun(object, stack)
      const isWanted = !wanted || hasWanted(stack, wanted)
      const outputs = connectionDetails && (await outputsOf(client, stack, signal))
      return {
        ...{ exists: true, isUpToDate: isWanted && again === undefined, problem, run },
        diff: isWanted ? 'a Run is requested' : `the spec of Stack ${stack.metadata.name}`,
        ready: ready === true ? (isReady?.(stack, object) ?? true) : ready,
        atProvider: atProvider?.(stack, object),
        connectionDetails: outputs && connectionDetails?.(outputs, object),
        state: { stack, wanted, request: again },
      }
    },
    async create(_, request) {
      const spec = await wantedFor(request)
      const stack = await stacks.create(request, spec, { [stackAnnotations.wanted]: digestOf(spec) })
      return { details: { stack: stack.metadata.name } }
    },
    async update(_, { client, signal }, { state }) {
      if (!state?.wanted) return
      const { stack, wanted, request } = state
      const { metadata } = stack
      const marks = { [stackAnnotations.wanted]: digestOf(wanted), ...(request && { [oarlockAnnotations.requestedRun]: request }) }
      // At the version that was observed: another replica, or a person, may have changed it.
      await client.resource(stackResource).update(
        {
          ...stack,
          metadata: { ...metadata, annotations: { ...metadata.annotations, ...marks } },
          spec: specOver(stack, wanted),
        },
        { signal },
      )
      return { details: { stack: metadata.name } }
    },
    async delete(_, { client, signal }, { state }) {
      if (!state || state.stack.metadata.deletionTimestamp) return
      const { name, namespace, uid } = state.stack.metadata
      try {
        await client.resource(stackResource).delete(name, { namespace, preconditions: { uid }, signal })
      } catch (error) {
        if (!isReason(error, 'NotFound')) throw error
      }
    },
    async pause(request) {
      const stack = await stacks.find(request)
      if (stack && ownershipOf(stack, request.object) === 'own') await suspendStack(request.client, stack, 'Paused', request.signal)
    },
    async unpublish(request) {
      const { object, client, signal } = request
      const stack = await stacks.find(request)
      if (stack && ownershipOf(stack, object) === 'own') await orphanStack(client, stack, object, signal)
      stacks.forget(objectKey(object))
      await rest.unpublish?.(request)
    },
  }
}

/** The request for another Run that the annotation of the resource makes, for a Stack that stopped: undefined if there is none, or the Stack has it. */
function requestedRun(object: ManagedObject, { metadata, status }: Stack): string | undefined {
  const token = requestTokenOf(object)
  if (!token || token === object.status?.lastHandledReconcileAt || !isConditionTrue(status?.conditions, 'Stalled')) return undefined
  const request = formatRunRequest('apply', token.replaceAll(/\s/g, '_'), undefined)
  return metadata.annotations?.[oarlockAnnotations.requestedRun] === request ? undefined : request
}
