import { partitionResource } from '../gateway/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { isReason } from '../kubernetes/object/index.ts'

/** Whether the server is one of several partitions, or a gateway. Another server has no such kind, or no one may read it. */
export async function isPartition(client: Client): Promise<boolean> {
  try {
    return (await client.resource(partitionResource).list({ limit: 1 })).items.length > 0
  } catch (error) {
    if (isReason(error, 'NotFound', 'Forbidden')) return false
    throw error
  }
}
