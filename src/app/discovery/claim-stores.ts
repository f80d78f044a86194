import type { Client } from '../../kubernetes/client/index.ts'
import { findEntry, updateEntry } from './endpoint-entry.ts'

/** Its own manager: the id stays published while the stores are stopped, when their address may be withdrawn. */
const fieldManager = 'oarlock-stores-id'

/** The id of the stores of this installation; undefined if none have claimed it. */
export async function readStoresId(client: Client): Promise<string | undefined> {
  return (await findEntry(client, 'stores'))?.data?.id
}

/**
 * Makes the stores with this id those of the installation, unless others are: engines that start from the empty state of other stores
 * create everything again. Atomic, so that of two stores that start at the same time one is refused.
 * @returns the id of the other stores, or undefined if these are the stores of the installation now.
 */
export async function claimStores(
  client: Client,
  id: string,
  { replace = false }: { replace?: boolean | undefined } = {},
): Promise<string | undefined> {
  let other: string | undefined
  await updateEntry(client, 'stores', {
    fieldManager,
    decide: entry => {
      other = entry.id === undefined || entry.id === id || replace ? undefined : entry.id
      return other !== undefined || entry.id === id ? undefined : { id }
    },
  })
  return other
}
