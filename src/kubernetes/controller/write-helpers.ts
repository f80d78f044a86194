import { type ApplyOptions, type Client, ResourceClient } from '../client/index.ts'
import { controllerReference, isReason, type KubeObject, type NewObject } from '../object/index.ts'
import { mergeDiff } from './merge-diff.ts'

/**
 * Patches the status of `object` to `nextStatus` if it differs, sending only what changed, and only if the object has not
 * moved on since it was read (Conflict otherwise: the next reconcile sees the newer one). Returns the object as it is
 * then: put it into the cache with `informer.applyLocal`.
 */
export async function patchStatusIfChanged<Body extends { status?: unknown }>(
  client: Client | ResourceClient<Body>,
  object: KubeObject<Body>,
  nextStatus: NonNullable<Body['status']>,
): Promise<KubeObject<Body>> {
  const change = mergeDiff(object.status ?? {}, nextStatus)
  if (change === undefined) return object
  const handle = await handleOf(client, object)
  const { name, namespace, resourceVersion } = object.metadata
  return await handle.patchStatus(name, { status: change as object }, { namespace, resourceVersion })
}

export function hasFinalizer(object: { metadata: { finalizers?: string[] | undefined } }, finalizer: string): boolean {
  return object.metadata.finalizers?.includes(finalizer) ?? false
}

/** Adds the finalizer if it is missing; returns the object as it is then. */
export async function addFinalizer<Body>(
  client: Client | ResourceClient<Body>,
  object: KubeObject<Body>,
  finalizer: string,
): Promise<KubeObject<Body>> {
  if (hasFinalizer(object, finalizer)) return object
  return await setFinalizers(client, object, [...(object.metadata.finalizers ?? []), finalizer])
}

/** Removes the finalizer if it is there; the last one removed from a deleted object ends it, which is no error if it is gone already. */
export async function removeFinalizer<Body>(
  client: Client | ResourceClient<Body>,
  object: KubeObject<Body>,
  finalizer: string,
): Promise<KubeObject<Body>> {
  if (!hasFinalizer(object, finalizer)) return object
  try {
    return await setFinalizers(
      client,
      object,
      (object.metadata.finalizers ?? []).filter(name => name !== finalizer),
    )
  } catch (error) {
    if (isReason(error, 'NotFound')) return object
    throw error
  }
}

export type WriteOutcome<Body> = { object: KubeObject<Body>; outcome: 'created' | 'patched' | 'unchanged' }

/**
 * Brings one object to what `mutate` makes of the present one (undefined: there is none): creates it, sends the
 * difference, or nothing. `mutate` gets a copy that it may change; a field that its result leaves out stays, one that is
 * undefined is removed. `current` is what the caller's cache has; without it the server is asked. The status is not written. @throws {StatusError} Conflict if the object moved on meanwhile.
 */
export async function createOrPatch<Body>(
  handle: ResourceClient<Body>,
  { name, namespace, current }: { name: string; namespace?: string | undefined; current?: KubeObject<Body> | undefined },
  mutate: (current: KubeObject<Body> | undefined) => NewObject<Body>,
): Promise<WriteOutcome<Body>> {
  const before = current ?? (await handle.getOrUndefined(name, { namespace }))
  if (!before) {
    const wanted = mutate(undefined)
    return { object: await handle.create({ ...wanted, metadata: { ...wanted.metadata, name, namespace } }), outcome: 'created' }
  }
  const after = mutate(structuredClone(before))
  const change = mergeDiff(writable(before), writable({ ...before, ...after, metadata: { ...before.metadata, ...after.metadata } }))
  if (change === undefined) return { object: before, outcome: 'unchanged' }
  const { resourceVersion } = before.metadata
  return { object: await handle.patch(name, change as object, { type: 'merge', namespace, resourceVersion }), outcome: 'patched' }
}

/** Server-side apply of an object that `owner` controls; takes over fields of others, as a controller should for what it owns. */
export async function applyOwned<Body>(
  handle: ResourceClient<Body>,
  owner: KubeObject<unknown>,
  object: NewObject<Body>,
  options: ApplyOptions = {},
): Promise<KubeObject<Body>> {
  const metadata = { namespace: owner.metadata.namespace, ...object.metadata, ownerReferences: [controllerReference(owner)] }
  return await handle.apply({ ...object, metadata }, { force: true, ...options })
}

async function setFinalizers<Body>(
  client: Client | ResourceClient<Body>,
  object: KubeObject<Body>,
  finalizers: string[],
): Promise<KubeObject<Body>> {
  const handle = await handleOf(client, object)
  const { name, namespace, resourceVersion } = object.metadata
  // A merge patch replaces the list, so the version must be the one it was read at.
  return await handle.patch(name, { metadata: { finalizers } }, { type: 'merge', namespace, resourceVersion })
}

async function handleOf<Body>(client: Client | ResourceClient<Body>, object: KubeObject<Body>): Promise<ResourceClient<Body>> {
  if (client instanceof ResourceClient) return client
  return client.resource(await client.discover(object.apiVersion, object.kind)) as ResourceClient<unknown> as ResourceClient<Body>
}

/** What createOrPatch may change: not the status, and of the metadata what users own. */
function writable(object: object): object {
  const { metadata, status: _, apiVersion: _v, kind: _k, ...rest } = object as KubeObject
  const { labels, annotations, finalizers, ownerReferences } = metadata
  return { ...rest, metadata: { labels, annotations, finalizers, ownerReferences } }
}
