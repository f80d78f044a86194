import { trackUpdate } from '../../apply/index.ts'
import type { KubeObject } from '../../object/index.ts'
import type { Kind } from '../registry/index.ts'
import type { WriteOptions } from './write-options.ts'

/** Who computes `metadata.managedFields`: `tracked`, the server by comparing; `applied`, server-side apply, which already has. */
export type FieldOwnership = 'tracked' | 'applied'

/** Computes `metadata.managedFields` of `after` from its difference to `before`. */
export function trackManagedFields(
  kind: Kind,
  before: KubeObject | undefined,
  after: KubeObject,
  subresource: string,
  options: WriteOptions,
): void {
  const { manager, nowMs } = options
  const entries = trackUpdate({
    before,
    // The initial status of a new object has no owner.
    after: before === undefined && kind.hasStatus ? { ...after, status: kind.strategy.zeroValue?.status } : after,
    zeroValue: kind.strategy.zeroValue,
    manager,
    schema: kind.schema,
    apiVersion: kind.apiVersion,
    subresource,
    nowMs,
  })
  if (entries?.length) after.metadata.managedFields = entries
  else delete after.metadata.managedFields
}
