import { gatewayProof } from '../gateway/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { StatusError } from '../kubernetes/object/index.ts'

/** Whether the server is a gateway, which shows the objects of all partitions. False for one of an earlier version. */
export async function isGateway(client: Client): Promise<boolean> {
  try {
    await client.request({ method: 'GET', path: gatewayProof.path })
    return false
  } catch (error) {
    // Partitions and other servers have no such path.
    if (error instanceof StatusError && error.code < 500) return error.details?.kind === gatewayProof.kind
    throw error
  }
}
