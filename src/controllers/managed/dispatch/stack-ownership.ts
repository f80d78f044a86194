/** Whose Stack it is; suspends, leaves and takes back the Stack of a resource: writes at the version that was read. */
import { type Stack, stackResource } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { controllerReference, type KubeObject } from '../../../kubernetes/object/index.ts'
import { stackAnnotations } from './stack-marks.ts'

/** `AnsibleRun.ansible.example/web`. */
function resourceId({ apiVersion, kind, metadata }: KubeObject<unknown>): string {
  return `${kind}.${apiVersion.replace(/\/[^/]*$/, '')}/${metadata.name}`
}

export type Ownership = 'own' | 'orphaned' | 'foreign'

/** Whose Stack it is. One without a controller that a resource of this name left behind is `orphaned`. */
export function ownershipOf({ metadata }: Stack, object: KubeObject<unknown>): Ownership {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller)
  if (owner) return owner.uid === object.metadata.uid ? 'own' : 'foreign'
  return metadata.annotations?.[stackAnnotations.orphanedFrom] === resourceId(object) ? 'orphaned' : 'foreign'
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
export async function adoptStack(client: Client, stack: Stack, object: KubeObject<unknown>, signal: AbortSignal): Promise<Stack> {
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
