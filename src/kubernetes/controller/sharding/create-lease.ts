import type { LeaseBody, ResourceClient } from '../../client/index.ts'
import { isReason, type KubeObject, type NewObject } from '../../object/index.ts'
import type { Log } from '../../util/log.ts'
import { ringLabel } from './lease-names.ts'

export type CreateLeaseOptions = {
  /** Name of the ring, the value of the label. */
  ring: string
  namespace: string
  log: Log
  signal: AbortSignal
}

/**
 * Creates a Lease of a ring. If one of this name exists without the label of the ring, no list and no watch shows it: it gets the label here, whatever it
 * contains, so that the next list shows it.
 * @throws {StatusError} AlreadyExists, also after the label was added; other errors if the existing Lease cannot be read or written.
 */
export async function createLease(
  leases: ResourceClient<LeaseBody>,
  lease: NewObject<LeaseBody>,
  { ring, namespace, log, signal }: CreateLeaseOptions,
): Promise<KubeObject<LeaseBody>> {
  try {
    return await leases.create(lease, { signal })
  } catch (thrown) {
    if (!isReason(thrown, 'AlreadyExists')) throw thrown
    const name = lease.metadata.name ?? ''
    const existing = await leases.getOrUndefined(name, { namespace, signal })
    if (existing && existing.metadata.labels?.[ringLabel] !== ring) {
      const labels = { ...existing.metadata.labels, [ringLabel]: ring }
      try {
        await leases.update({ ...existing, metadata: { ...existing.metadata, labels } }, { signal })
        log.warn({ lease: `${namespace}/${name}` }, `a Lease of the ring did not have the label ${ringLabel}=${ring}: added it`)
      } catch (failure) {
        // Another process was faster.
        if (!isReason(failure, 'Conflict', 'NotFound')) throw failure
      }
    }
    throw thrown
  }
}
