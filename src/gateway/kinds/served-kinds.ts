import type { Client } from '../../kubernetes/client/index.ts'
import { isJsonObject } from '../../kubernetes/object/index.ts'

export type ServedKind = {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly scope: 'Namespaced' | 'Cluster'
}

const accept = ['v2', 'v2beta1'].map(version => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`).join(',')

/**
 * The kinds of a server, from its aggregated discovery.
 * @throws {StatusError} or {ConnectionError} if it does not answer, {Error} if the answer is no APIGroupDiscoveryList: no kind would be known.
 */
export async function readServedKinds(client: Pick<Client, 'request'>, timeoutMs: number): Promise<ServedKind[]> {
  const get = async (path: string) => await (await client.request({ method: 'GET', path, headers: { accept }, timeoutMs })).json()
  return (await Promise.all([get('/api'), get('/apis')])).flatMap(kindsIn)
}

type Group = {
  metadata?: { name?: string }
  versions: { version: string; resources?: { resource: string; scope: ServedKind['scope'] }[] }[]
}

function kindsIn(list: unknown): ServedKind[] {
  if (!isJsonObject(list) || list.kind !== 'APIGroupDiscoveryList' || !Array.isArray(list.items))
    throw new Error('the answer is not an APIGroupDiscoveryList')
  return (list.items as Group[]).flatMap(({ metadata, versions }) =>
    versions.flatMap(({ version, resources = [] }) =>
      resources.map(({ resource, scope }) => ({ group: metadata?.name ?? '', version, plural: resource, scope })),
    ),
  )
}
