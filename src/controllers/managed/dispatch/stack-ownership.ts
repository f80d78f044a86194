/** Suspends, leaves and takes back the Stack of a resource: writes at the version that was read. */
import {
  endedPhases,
  outputsSecretName,
  outputsSecretType,
  type Run,
  type RunPhase,
  runResource,
  type Stack,
  stackResource,
} from '../../../api/index.ts'
import { type Client, secretResource } from '../../../kubernetes/client/index.ts'
import { controllerReference, type Json, type KubeObject } from '../../../kubernetes/object/index.ts'
import { resourceId, stackAnnotations } from './stack-marks.ts'

/** A Run as the status needs it: its frozen spec may be large. */
export function withoutInputs(run: KubeObject<Pick<Run, 'spec' | 'status'>>): KubeObject<Pick<Run, 'spec' | 'status'>> {
  const { stackRef, epoch, type } = run.spec
  const { phase, progress, message, reason } = run.status ?? {}
  return { ...run, spec: { stackRef, epoch, type }, status: { phase, progress, message, reason } } as typeof run
}

/** The newest Run of the Stack unless it has ended: then the status of the Stack has everything. */
export async function activeRun(client: Client, { metadata, status }: Stack, signal: AbortSignal): Promise<Run | undefined> {
  const { lastRun } = status ?? {}
  if (!lastRun || endedPhases.includes(lastRun.phase as RunPhase)) return undefined
  return await client.resource(runResource).getOrUndefined(lastRun.name, { namespace: metadata.namespace, signal })
}

/** All outputs of the last Apply, with secret ones; undefined if there are none. */
export async function outputsOf(
  client: Client,
  { metadata, status }: Stack,
  signal: AbortSignal,
): Promise<Record<string, Json> | undefined> {
  if (!status?.outputsDigest) return undefined
  const { name, namespace } = metadata
  const secret = await client.resource(secretResource).getOrUndefined(outputsSecretName(name), { namespace, signal })
  if (secret?.type !== outputsSecretType) return undefined
  const entries = Object.entries(secret.data ?? {})
  return Object.fromEntries(entries.map(([key, value]) => [key, JSON.parse(Buffer.from(value, 'base64').toString()) as Json]))
}

/** Why a Stack that exists is not used. */
export function foreignStack({ metadata }: Stack, { kind }: KubeObject<unknown>): Error {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller)
  const whose = owner ? `belongs to ${owner.kind} ${owner.name}` : 'has no owner'
  return new Error(
    `Stack ${metadata.namespace}/${metadata.name} exists, and ${whose}: delete it, or rename this ${kind}; it is not taken over`,
  )
}

/** Suspends a Stack, unless someone has. */
export async function suspendStack(client: Client, stack: Stack, reason: 'Paused' | 'Orphaned', signal: AbortSignal): Promise<Stack> {
  if (stack.spec.suspend) return stack
  const { name, namespace, resourceVersion } = stack.metadata
  const change = { spec: { suspend: true }, metadata: { annotations: { [stackAnnotations.suspended]: reason } } }
  return await client.resource(stackResource).patch(name, change, { type: 'merge', namespace, resourceVersion, signal })
}

/** Leaves the Stack and its resources to people: the garbage collector would delete it with the resource, and so destroy what must be kept. */
export async function orphanStack(client: Client, stack: Stack, object: KubeObject<unknown>, signal: AbortSignal): Promise<void> {
  const { metadata, spec } = await suspendStack(client, stack, 'Orphaned', signal)
  const ownerReferences = metadata.ownerReferences?.filter(({ uid }) => uid !== object.metadata.uid)
  const annotations = { ...metadata.annotations, [stackAnnotations.orphanedFrom]: resourceId(object) }
  await client.resource(stackResource).update({ ...stack, metadata: { ...metadata, ownerReferences, annotations }, spec }, { signal })
}

/** Resumes a Stack that this controller has suspended, and takes one back that an earlier resource of this name left behind. */
export async function takeStack(client: Client, stack: Stack, object: KubeObject<unknown>, signal: AbortSignal): Promise<Stack> {
  const { metadata, spec } = stack
  const { [stackAnnotations.suspended]: reason, [stackAnnotations.orphanedFrom]: _o, ...annotations } = metadata.annotations ?? {}
  const others = (metadata.ownerReferences ?? []).filter(({ uid }) => uid !== object.metadata.uid)
  const ownerReferences = [...others, controllerReference(object)]
  return await client
    .resource(stackResource)
    .update(
      { ...stack, metadata: { ...metadata, annotations, ownerReferences }, spec: reason ? { ...spec, suspend: false } : spec },
      { signal },
    )
}
