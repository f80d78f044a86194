import type { Client } from '../../kubernetes/client/index.ts'
import { isJsonObject } from '../../kubernetes/object/index.ts'

/** What a server serves: its scope by `boats.v1.harbor.example`. */
export type ServedKinds = ReadonlyMap<string, string>

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
const readTimeoutMs = 10_000
/** More names do not help who reads it. */
const maxNames = 5

/** Reads the kinds of a server from its discovery. @throws {StatusError} or {ConnectionError} if it does not answer, {Error} if the answer is none. */
export async function readServedKinds(client: Pick<Client, 'request'>): Promise<ServedKinds> {
  const get = async (path: string) =>
    await (await client.request({ method: 'GET', path, headers: { accept: aggregated }, timeoutMs: readTimeoutMs })).json()
  return new Map((await Promise.all([get('/api'), get('/apis')])).flatMap(kindsIn))
}

type Version = { version: string; resources?: { resource: string; scope: string }[] }

function kindsIn(list: unknown): [string, string][] {
  if (!isJsonObject(list) || list.kind !== 'APIGroupDiscoveryList' || !Array.isArray(list.items))
    throw new Error('the answer is not an APIGroupDiscoveryList')
  return (list.items as { metadata?: { name?: string }; versions: Version[] }[]).flatMap(({ metadata, versions }) =>
    versions.flatMap(({ version, resources = [] }) =>
      resources.map(({ resource, scope }): [string, string] => [[resource, version, metadata?.name].filter(Boolean).join('.'), scope]),
    ),
  )
}

/**
 * How the kinds of a partition differ from those of home, as a sentence; undefined if they do not. The gateway answers discovery with the kinds of home: a
 * client would ask this partition for kinds that it lacks.
 */
export function compareKinds(home: ServedKinds, own: ServedKinds): string | undefined {
  const lacks = [...home.keys()].filter(kind => !own.has(kind))
  const adds = [...own.keys()].filter(kind => !home.has(kind))
  const differs = [...home].filter(([kind, scope]) => (own.get(kind) ?? scope) !== scope).map(([kind]) => kind)
  const parts = [
    ...(lacks.length > 0 ? [`it does not serve ${named(lacks)}`] : []),
    ...(adds.length > 0 ? [`it serves ${named(adds)}, which home does not`] : []),
    ...(differs.length > 0 ? [`the scope of ${named(differs)} is another one than at home`] : []),
  ]
  return parts.length === 0 ? undefined : parts.join('; ')
}

function named(kinds: readonly string[]): string {
  const shown = [...kinds].sort().slice(0, maxNames)
  return kinds.length > shown.length ? `${shown.join(', ')} and ${kinds.length - shown.length} more` : shown.join(', ')
}
