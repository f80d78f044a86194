import type { Client } from '../../kubernetes/client/index.ts'
import { readStoresClaim } from '../discovery/index.ts'

/** Whether stores have run with an API server, also if they do not now. */
export const hasStores = async (client: Client): Promise<boolean> => (await readStoresClaim(client)).id !== undefined
