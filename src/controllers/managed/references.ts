/** References between managed resources: a field that is filled from another object. */
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason, type JsonObject, type KubeObject, type Resource } from '../../kubernetes/object/index.ts'
import { externalNameOf } from './annotations.ts'
import type { ManagedBody, ManagedObject } from './managed-object.ts'

/** `spec.forProvider.FIELD` is filled from the object that `spec.forProvider.REF` names, as in `{ field: 'owner', ref: 'ownerRef', to: roleResource }`. */
export type Reference = {
  /** Name of the field of `spec.forProvider`. */
  readonly field: string
  /** Name of the field of `spec.forProvider` with `{ name, policy? }`. Default: `FIELDRef`. */
  readonly ref?: string | undefined
  /** Name of the field of `spec.forProvider` with `{ matchLabels }`; the first object by name. Default: `FIELDSelector`. */
  readonly selector?: string | undefined
  readonly to: Resource<ManagedBody>
  /** What is written into the field. Default: the external name. */
  readonly value?: ((object: KubeObject<ManagedBody>) => string | undefined) | undefined
}

/** Crossplane's policies of a reference. */
type Policy = { resolution?: 'Required' | 'Optional'; resolve?: 'Always' | 'IfNotPresent' }
type Ref = { name: string; policy?: Policy }
type Selector = { matchLabels?: Record<string, string>; policy?: Policy }

/** What to write into `spec.forProvider`; undefined if nothing changes. @throws {Error} if an object that is required is not there or has no external name yet. */
export async function resolveReferences(
  client: Client,
  object: ManagedObject,
  references: readonly Reference[],
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  const fields = (object.spec?.forProvider ?? {}) as Record<string, unknown>
  const { namespace } = object.metadata
  const changes: JsonObject = {}
  for (const { field, ref = `${field}Ref`, selector = `${field}Selector`, to, value = externalNameOf } of references) {
    const named = fields[ref] as Ref | undefined
    const selected = fields[selector] as Selector | undefined
    const policy = named?.policy ?? selected?.policy ?? {}
    if (!named && !selected) continue
    if (fields[field] !== undefined && policy.resolve !== 'Always') continue
    const handle = client.resource(to)
    const found = named
      ? await handle.getOrUndefined(named.name, { namespace, signal })
      : await firstMatch(client, to, namespace, selected?.matchLabels ?? {}, signal)
    const where = named
      ? `${to.kind} ${JSON.stringify(named.name)}`
      : `a ${to.kind} with labels ${JSON.stringify(selected?.matchLabels ?? {})}`
    const resolved = found && value(found)
    if (!resolved) {
      if (policy.resolution === 'Optional') continue
      throw new Error(
        `spec.forProvider.${named ? ref : selector} refers to ${where}, which ${found ? 'has no external name yet' : 'does not exist'}`,
      )
    }
    if (fields[field] !== resolved) changes[field] = resolved
    if (!named && found) changes[ref] = { name: found.metadata.name }
  }
  return Object.keys(changes).length > 0 ? changes : undefined
}

async function firstMatch(
  client: Client,
  resource: Resource<ManagedBody>,
  namespace: string | undefined,
  labels: Record<string, string>,
  signal: AbortSignal,
): Promise<KubeObject<ManagedBody> | undefined> {
  const labelSelector = Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
  try {
    const { items } = await client.resource(resource).listAll({ ...(namespace && { namespace }), labelSelector, signal })
    return items.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))[0]
  } catch (error) {
    if (isReason(error, 'NotFound')) return undefined
    throw error
  }
}
