import { type WorkerPool, workerPoolResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'

/**
 * Creates the WorkerPool `default` unless it exists. An existing one belongs to the user: only an explicit `max` changes it.
 * @param options.newMax its maximum size if it is created without `max`. Default: that of the schema.
 */
export async function ensureDefaultPool(
  client: Client,
  { max, newMax }: { max?: number | undefined; newMax?: number } = {},
): Promise<void> {
  const pools = client.resource(workerPoolResource)
  const existing = await pools.getOrUndefined('default')
  if (existing) {
    if (max !== undefined && existing.spec.max !== max) await pools.patch('default', { spec: { max } }, { type: 'merge' })
    return
  }
  const size = max ?? newMax
  const spec: WorkerPool['spec'] = { mode: 'Process', ...(size !== undefined && { max: size }) }
  try {
    await pools.create({ metadata: { name: 'default' }, spec })
  } catch (error) {
    // Another process was faster.
    if (!isReason(error, 'AlreadyExists')) throw error
  }
}
