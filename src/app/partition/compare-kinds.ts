import { readServedKinds } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'

/** What a server serves: its scope by `boats.v1.harbor.example`. */
export type ServedKinds = ReadonlyMap<string, string>

const readTimeoutMs = 10_000
/** More names do not help who reads it. */
const maxNames = 5

/** Reads the kinds of a server from its discovery. @throws {StatusError} or {ConnectionError} if it does not answer. */
export async function readKinds(client: Pick<Client, 'request'>): Promise<ServedKinds> {
  const kinds = await readServedKinds(client, readTimeoutMs)
  return new Map(kinds.map(({ plural, version, group, scope }) => [[plural, version, group].filter(Boolean).join('.'), scope]))
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
