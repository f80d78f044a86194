import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../kubernetes/client/index.ts'
import { equalJson, isReason, type KubeObject, type Resource } from '../kubernetes/object/index.ts'
import type { Manifest } from './read-manifests.ts'

export type Applied = { resource: Resource; object: KubeObject; outcome: 'created' | 'configured' | 'unchanged' }
export type ApplyOptions = { namespace: string; force?: boolean; dryRun?: boolean; fieldManager?: string }

/** How long it may take until the kind of a CustomResourceDefinition that was just applied is served. */
const newKindTimeoutMs = 10_000

/**
 * Server-side apply of one object. An unknown field is an error instead of being dropped.
 * @throws {StatusError} NotFound for an unknown kind, Conflict without `force`, Invalid.
 */
export async function applyManifest(client: Client, { object }: Manifest, options: ApplyOptions & { mayBeNew: boolean }): Promise<Applied> {
  const { force, dryRun, fieldManager } = options
  const resource = await discover(client, object, options.mayBeNew ? Date.now() + newKindTimeoutMs : 0)
  const namespace = resource.scope === 'Namespaced' ? (object.metadata.namespace ?? options.namespace) : undefined
  const handle = client.resource(resource)
  const before = await handle.getOrUndefined(object.metadata.name, { namespace })
  const after = await handle.apply(object, { namespace, force, dryRun, fieldManager, fieldValidation: 'Strict' })
  const outcome = !before ? 'created' : isUnchanged(before, after) ? 'unchanged' : 'configured'
  return { resource, object: after, outcome }
}

/**
 * Whether the apply changed nothing. A controller may have written the status in the meantime, which does not count. A dry run keeps the
 * resourceVersion, whatever it would change.
 */
function isUnchanged(before: KubeObject, after: KubeObject): boolean {
  return equalJson(applicable(before), applicable(after))
}

function applicable(object: KubeObject): unknown {
  const { status: _, metadata, ...rest } = object as KubeObject & { status?: unknown }
  const { resourceVersion: _revision, managedFields: _managers, ...kept } = metadata
  return { ...rest, metadata: kept }
}

async function discover(client: Client, { apiVersion, kind }: { apiVersion: string; kind: string }, deadlineMs: number): Promise<Resource> {
  for (;;) {
    try {
      return await client.discover(apiVersion, kind)
    } catch (error) {
      if (!isReason(error, 'NotFound') || Date.now() >= deadlineMs) throw error
      await sleep(100)
    }
  }
}
