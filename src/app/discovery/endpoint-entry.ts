import { systemNamespace } from '../../api/index.ts'
import { type Client, type ConfigMapBody, configMapResource } from '../../kubernetes/client/index.ts'
import { isReason, type KubeObject } from '../../kubernetes/object/index.ts'

export const endpointRoles = ['stores', 'join', 'queue'] as const
export type EndpointRole = (typeof endpointRoles)[number]

/** The ConfigMap of a role in `oarlock-system`. Each has one of its own, because RBAC cannot restrict who writes which key. */
export const endpointName = (role: EndpointRole): string => `oarlock-endpoint-${role}`

export type Entry = Readonly<Record<string, string>>

export async function findEntry(client: Client, role: EndpointRole, signal?: AbortSignal): Promise<KubeObject<ConfigMapBody> | undefined> {
  return await client.resource(configMapResource).getOrUndefined(endpointName(role), { namespace: systemNamespace, signal })
}

/** Owns no field: with the manager of a role, this write would remove what another process of the role has published. */
const creator = 'oarlock-endpoints'

/**
 * Applies the fields of one field manager in the entry of a role, at the version that they were decided from (invariant 7): server-side
 * apply removes what the manager applied before and does not apply any more.
 * @param decide returns the fields, or undefined to leave the entry as it is.
 */
export async function updateEntry(
  client: Client,
  role: EndpointRole,
  { fieldManager, signal, decide }: { fieldManager: string; signal?: AbortSignal | undefined; decide(entry: Entry): Entry | undefined },
): Promise<void> {
  const configMaps = client.resource(configMapResource)
  const metadata = { name: endpointName(role), namespace: systemNamespace }
  for (;;) {
    const found = await findEntry(client, role, signal)
    // By apply and not by create, which RBAC cannot restrict to a name.
    if (!found) {
      await configMaps.apply({ metadata }, { fieldManager: creator, signal })
      continue
    }
    const data = decide(found.data ?? {})
    if (data === undefined) return
    const { resourceVersion } = found.metadata
    try {
      await configMaps.apply({ metadata: { ...metadata, resourceVersion }, data }, { force: true, fieldManager, signal })
      return
    } catch (error) {
      if (!isReason(error, 'Conflict')) throw error
    }
  }
}
