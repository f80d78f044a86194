import { randomUUID } from 'node:crypto'
import type { Client } from '../../kubernetes/client/index.ts'
import { alreadyExists, isReason, StatusError } from '../../kubernetes/object/index.ts'
import { claimName, type NameClaim, nameClaimResource, renewedAnnotation } from '../kinds/index.ts'
import type { ObjectOwner } from '../routing/index.ts'

const attempts = 3

export type ClaimOptions = {
  /** Of home. */
  readonly client: Client
  /** Called with the claim that home has now. */
  onClaim(claim: NameClaim): void
}

/**
 * Claims a name for a partition: a conditional creation at home, so that of two gateways one succeeds. A claim that the partition has already is
 * renewed: its new resource version keeps it from being removed while the object is created.
 * @param table of the object, by plural and group.
 * @returns the resource version of the claim.
 * @throws {StatusError} AlreadyExists if another partition has the name, ServiceUnavailable if home does not answer.
 */
export async function claimObjectName(table: string, name: string, owner: ObjectOwner, { client, onClaim }: ClaimOptions): Promise<number> {
  try {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const claim = await createOrRenew(client, table, name, owner)
      if (!claim) continue
      onClaim(claim)
      // A gateway that ended after its claim, and before the creation: the object decides.
      if (claim.spec.partition === owner.partition) return Number(claim.metadata.resourceVersion)
      const { message, details } = alreadyExists({ group: '', plural: table }, name)
      const why = `in another partition than that of this object, or existed there until a minute ago`
      throw new StatusError('AlreadyExists', `${message} ${why}`, { details })
    }
    throw new Error('it changes all the time')
  } catch (error) {
    if (isReason(error, 'AlreadyExists')) throw error
    // Such as a Namespace whose Tenant has moved a moment ago.
    if (isReason(error, 'Forbidden')) {
      const why = `the name of ${table} ${JSON.stringify(name)} cannot be claimed: ${error.message}`
      throw new StatusError('ServiceUnavailable', why, { cause: error, details: { retryAfterSeconds: 1 } })
    }
    throw new StatusError(
      'ServiceUnavailable',
      `the name of ${table} ${JSON.stringify(name)} cannot be claimed, because home does not answer: ${(error as Error).message}`,
      { cause: error },
    )
  }
}

/** The new or renewed claim, or that of another partition; undefined if it was removed meanwhile. */
async function createOrRenew(
  client: Client,
  table: string,
  name: string,
  { partition, tenant }: ObjectOwner,
): Promise<NameClaim | undefined> {
  const claims = client.resource(nameClaimResource)
  const key = claimName(table, name)
  const spec = { resource: table, name, partition, ...(tenant && { tenant }) }
  try {
    return await claims.create({ metadata: { name: key }, spec })
  } catch (error) {
    if (!isReason(error, 'AlreadyExists')) throw error
  }
  const existing = await claims.getOrUndefined(key)
  if (existing?.spec.partition !== partition) return existing
  const metadata = { uid: existing.metadata.uid, annotations: { [renewedAnnotation]: randomUUID() } }
  try {
    return await claims.patch(key, { metadata, ...(tenant && { spec: { tenant } }) }, { type: 'merge' })
  } catch (error) {
    // Another one has the name by now.
    if (isReason(error, 'NotFound', 'Conflict')) return undefined
    throw error
  }
}
