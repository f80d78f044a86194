import type { Client } from '../../kubernetes/client/index.ts'
import { isJsonObject, isReason, type KubeObject } from '../../kubernetes/object/index.ts'
import type { Manifest } from './rule.ts'

/** Objects that a server lacks or has with other content, as `Kind/name`. */
export type ManifestDifferences = { readonly missing: readonly string[]; readonly changed: readonly string[]; readonly total: number }

/**
 * Compares what is installed with manifests. What the server or others have added to an object is no difference, except in
 * lists, which are compared as a whole.
 * @throws {StatusError} Forbidden for a user who may not read them.
 */
export async function compareManifests(client: Client, wanted: readonly Manifest[]): Promise<ManifestDifferences> {
  const found = await Promise.all(wanted.map(manifest => read(client, manifest)))
  const names = (isDifferent: (object: KubeObject | undefined, index: number) => boolean) =>
    wanted.filter((_, index) => isDifferent(found[index], index)).map(({ kind, metadata: { name } }) => `${kind}/${name}`)
  return {
    missing: names(object => object === undefined),
    changed: names((object, index) => object !== undefined && !contains(object, contentOf(wanted[index]!))),
    total: wanted.length,
  }
}

async function read(client: Client, { apiVersion, kind, metadata: { name, namespace } }: Manifest): Promise<KubeObject | undefined> {
  try {
    return (await client.resource(await client.discover(apiVersion, kind)).getOrUndefined(name, { namespace })) as KubeObject | undefined
  } catch (error) {
    // The server does not serve the kind.
    if (isReason(error, 'NotFound')) return undefined
    throw error
  }
}

function contentOf({ metadata: _, ...content }: Manifest): object {
  return content
}

/** Whether `found` has every field of `wanted` with its value; a field that is empty in `wanted` may be missing. */
export function contains(found: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    const list = Array.isArray(found) ? found : []
    return list.length === wanted.length && wanted.every((item, index) => contains(list[index], item))
  }
  if (!isJsonObject(wanted)) return found === wanted
  const object = isJsonObject(found) ? found : {}
  return Object.entries(wanted).every(
    ([field, value]) => value === undefined || isEmpty(value, object[field]) || contains(object[field], value),
  )
}

const isEmpty = (value: unknown, found: unknown) =>
  found === undefined && typeof value === 'object' && value !== null && Object.keys(value).length === 0
