import type { WorkerPool } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { createJoinToken } from './manage-tokens.ts'
import { anyLabel } from './worker-labels.ts'

/** Longer than dispatch waits for a Pod to register (10 minutes, unless its pool has another limit). */
const podTokenTtlMs = 60 * 60_000

/**
 * Creates the join token of a worker Pod. The token is in a Secret of the Pod, so it is valid for one use, one name and an hour: once the
 * worker has joined it is useless. It allows any label, because the template of the pool sets them.
 */
export async function createPodCredential(
  client: Client,
  caCertificate: string,
  { pool, worker }: { pool: WorkerPool; worker: string },
): Promise<string> {
  const token = { pool: pool.metadata.name, worker, uses: 1, ttlMs: podTokenTtlMs, allowLabels: [anyLabel] }
  return (await createJoinToken(client, caCertificate, token)).text
}
