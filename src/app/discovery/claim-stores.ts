import { systemNamespace } from '../../api/index.ts'
import { type Client, configMapResource } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { endpointsName } from './endpoints-name.ts'

const key = 'stores.id'
/** Its own manager: the id stays published while the stores are stopped, when their address may be withdrawn. */
const fieldManager = 'oarlock-stores-id'

/** The id of the stores of this installation; undefined if none have claimed it. */
export async function readStoresId(client: Client): Promise<string | undefined> {
  return (await client.resource(configMapResource).getOrUndefined(endpointsName, { namespace: systemNamespace }))?.data?.[key]
}

/**
 * Makes the stores with this id those of the installation, unless others are: engines that start from the empty state of other stores
 * create everything again. Atomic, so that of two stores that start at the same time one is refused.
 * @returns the id of the other stores, or undefined if these are the stores of the installation now.
 */
export async function claimStores(client: Client, id: string, { replace = false } = {}): Promise<string | undefined> {
  const configMaps = client.resource(configMapResource)
  const metadata = { name: endpointsName, namespace: systemNamespace }
  for (;;) {
    try {
      const found = await configMaps.getOrUndefined(endpointsName, { namespace: systemNamespace })
      if (!found) {
        // Without data, so that it owns no field. The next round applies to this version of the object only.
        await configMaps.create({ metadata })
        continue
      }
      const published = found.data?.[key]
      if (published === id) return undefined
      if (published !== undefined && !replace) return published
      const { resourceVersion } = found.metadata
      await configMaps.apply({ metadata: { ...metadata, resourceVersion }, data: { [key]: id } }, { force: true, fieldManager })
      return undefined
    } catch (error) {
      if (!isReason(error, 'AlreadyExists', 'Conflict')) throw error
    }
  }
}
