import { touchOwnership } from '../../apply/index.ts'
import { hasStringFormat, isJsonObject, type KubeObject } from '../../object/index.ts'
import type { StoredEntry } from '../storage/index.ts'
import { parseJson } from './body.ts'
import { admit, type Call } from './call.ts'
import { readEntry, type WriteDecision } from './mutate.ts'
import type { WriteOptions } from './write-options.ts'

/** A merge patch that changes `spec.renewTime` only, as workers send it. `uid` is the Lease that it is meant for. */
export type LeaseRenewal = { readonly uid: string | undefined; readonly renewTime: string }

type Lease = KubeObject & { readonly spec?: { readonly holderIdentity?: string; readonly renewTime?: string } }

const leasesTable = 'leases.coordination.k8s.io'
const maxLength = 500
const microTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d\.\d{6}Z$/

/** The renewal in the body of a patch; undefined for any other patch, and for a form that has to be normalized or rejected. */
export function readLeaseRenewal({ target, input }: Call): LeaseRenewal | undefined {
  const { kind, subresource } = target
  const { body, contentType } = input
  if (kind.storageName !== leasesTable || subresource !== '' || contentType !== 'application/merge-patch+json') return undefined
  if (body.length > maxLength) return undefined
  const patch = parseJson(body)
  if (!isJsonObject(patch)) return undefined
  const { metadata = {}, spec, ...others } = patch
  if (!isJsonObject(metadata) || !isJsonObject(spec)) return undefined
  const { uid, ...otherMetadata } = metadata
  const { renewTime, ...otherSpec } = spec
  for (const rest of [others, otherMetadata, otherSpec]) for (const _ in rest) return undefined
  if (uid !== undefined && (typeof uid !== 'string' || uid === '')) return undefined
  if (typeof renewTime !== 'string' || !microTime.test(renewTime) || !hasStringFormat(renewTime, 'date-time')) return undefined
  return { uid, renewTime }
}

/**
 * What the general path decides for a renewal, without what a renewal cannot change: decoding, defaults, validation, and which fields
 * the manager owns. Undefined when the general path has to decide. Measured: 24 instead of 35 µs of the main thread for a renewal, of
 * which 2,000 workers send 1,000 a second.
 */
export function decideLeaseRenewal(
  call: Call,
  head: StoredEntry,
  { uid, renewTime }: LeaseRenewal,
  options: WriteOptions,
): WriteDecision | undefined {
  const { kind } = call.target
  if (head.deleting || options.dryRun || (uid !== undefined && uid !== head.uid)) return undefined
  const live = readEntry(kind, head) as Lease
  const { spec, metadata } = live
  if (!spec?.holderIdentity || spec.renewTime === undefined || spec.renewTime === renewTime || !metadata.managedFields) return undefined
  const key = { manager: options.manager, operation: 'Update', apiVersion: kind.apiVersion } as const
  const managedFields = touchOwnership(metadata.managedFields, key, ['f:spec', 'f:renewTime'], options.nowMs)
  if (!managedFields) return undefined
  const renewed: KubeObject = { ...live, metadata: { ...metadata, managedFields }, spec: { ...spec, renewTime } }
  admit(call, renewed, live, options)
  return { put: renewed, isDeferred: true }
}
