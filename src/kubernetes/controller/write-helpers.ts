import { type ApplyOptions, type Client, ResourceClient } from '../client/index.ts'
import { controllerReference, isReason, type KubeObject, type NewObject } from '../object/index.ts'
import { mergeDiff } from './merge-diff.ts'

/**
 * Patches the status of `object` to `nextStatus` if it differs, sending only what changed and the resource version that was read.
 * Returns the resulting object; put it into a cache with `informer.applyLocal` if the client is not the manager's.
 * @throws {StatusError} Conflict if the object has changed since it was read: the next reconcile sees the newer version.
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

/** Adds the finalizer if it is missing; returns the resulting object. */
export async function addFinalizer<Body>(
  client: Client | ResourceClient<Body>,
  object: KubeObject<Body>,
  finalizer: string,
): Promise<KubeObject<Body>> {
  if (hasFinalizer(object, finalizer)) return object
  return await setFinalizers(client, object, [...(object.metadata.finalizers ?? []), finalizer])
}

/** Removes the finalizer if present. Removing the last one from a deleted object deletes it; an object that no longer exists is not an error. */
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
 * Brings one object to what `mutate` returns for the current one (undefined: it does not exist): creates it, sends the difference, or
 * nothing. `mutate` receives a copy that it may modify; a field missing in its result is kept, one that is undefined is removed.
 * `current` is the caller's cached object; without it the server is queried. The status is not written.
 * @throws {StatusError} Conflict if the object changed meanwhile.
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
  // Prepared as a whole: what a client adds to a part, such as a label, would replace what the part leaves out.
  const merged = handle.prepare({ ...before, ...after, metadata: { ...before.metadata, ...after.metadata } })
  const change = mergeDiff(writable(before), writable(merged))
  if (change === undefined) return { object: before, outcome: 'unchanged' }
  const { resourceVersion } = before.metadata
  return { object: await handle.patch(name, change as object, { type: 'merge', namespace, resourceVersion }), outcome: 'patched' }
}

/** Server-side apply of an object that `owner` controls; takes over fields of other managers, as a controller should for what it owns. */
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
  // A merge patch replaces the whole list, so it must carry the version that was read.
  return await handle.patch(name, { metadata: { finalizers } }, { type: 'merge', namespace, resourceVersion })
}

async function handleOf<Body>(client: Client | ResourceClient<Body>, object: KubeObject<Body>): Promise<ResourceClient<Body>> {
  if (client instanceof ResourceClient) return client
  return client.resource(await client.discover(object.apiVersion, object.kind)) as ResourceClient<unknown> as ResourceClient<Body>
}

/** What createOrPatch may change: everything but the status and the metadata that the server owns. */
function writable(object: object): object {
  const { metadata, status: _, apiVersion: _v, kind: _k, ...rest } = object as KubeObject
  const { labels, annotations, finalizers, ownerReferences } = metadata
  return { ...rest, metadata: { labels, annotations, finalizers, ownerReferences } }
}
