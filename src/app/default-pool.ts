import { cpus } from 'node:os'
import { type WorkerPool, workerPoolResource } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'

/** Creates the WorkerPool `default` unless it exists. An existing one belongs to the user: only an explicit `max` changes it. */
export async function ensureDefaultPool(client: Client, max: number | undefined): Promise<void> {
  const pools = client.resource(workerPoolResource)
  const existing = await pools.getOrUndefined('default')
  if (!existing) {
    const spec: WorkerPool['spec'] = { mode: 'Process', max: max ?? Math.max(2, cpus().length) }
    await pools.create({ metadata: { name: 'default' }, spec })
  } else if (max !== undefined && existing.spec.max !== max) {
    await pools.patch('default', { spec: { max } }, { type: 'merge' })
  }
}
