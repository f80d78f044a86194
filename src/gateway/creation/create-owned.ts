import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { badRequest, StatusError } from '../../kubernetes/object/index.ts'
import { mediaType } from '../../kubernetes/util/index.ts'
import { discardBody, type Partition } from '../partition/index.ts'
import { type ClientRequest, forwardedHeaders, type GatewayUser, type NewObject, named, readTarget } from '../request/index.ts'
import { decideOwner, type GatewayMap, misdirected, type ObjectOwner, type PartitionRole, roleOf, tenantLabel } from '../routing/index.ts'
import { createClaimed } from './create-claimed.ts'

export type OwnedCreation = {
  readonly table: string
  /** In the path. */
  readonly name: string
  readonly object: NewObject | undefined
  readonly body: Uint8Array | undefined
  readonly user: GatewayUser
  readonly map: GatewayMap
  readonly signal: AbortSignal
}

/** What a creation needs of the objects at home. */
export type CreationOptions = {
  /** Tenants that the user may create namespaces of; of `wanted` only whether it is one. */
  tenantsOf(user: GatewayUser, wanted?: string): Promise<readonly string[]>
  /** Before the first object of a role: `announceRole`. */
  announceRole(partition: string, role: PartitionRole): Promise<void>
  /**
   * Claims the name of an owned object for a partition, or renews its claim. Returns the resource version of the claim.
   * @throws {StatusError} AlreadyExists if another partition has it.
   */
  claim(table: string, name: string, owner: ObjectOwner): Promise<number>
}

export type CreateOwnedOptions = CreationOptions & {
  /** @throws {StatusError} ServiceUnavailable if it has no address. */
  connectionTo(partition: string): Partition
}

/**
 * Creates an object whose name is unique in all partitions. Its partition is asked first whether it would accept the object: without the right to create it,
 * a user must not be able to take a name, and an object that is not valid must leave no claim.
 * @throws {StatusError} Forbidden if no partition may have it, BadRequest without a name, ServiceUnavailable if its Tenant has moved a moment ago, and what
 * the options throw.
 */
export async function createOwned(
  request: ClientRequest,
  { table, object, user, map, signal, ...sent }: OwnedCreation,
  { tenantsOf, announceRole, claim, connectionTo }: CreateOwnedOptions,
): Promise<TransportStreamResponse> {
  const { name, body } = named(sent, object, mediaType(request.headers['content-type']))
  if (name === '') throw badRequest(`${table} need a metadata.name or metadata.generateName: the gateway claims their names`)
  const tenants = table === 'namespaces' ? await tenantsOf(user, object?.labels?.[tenantLabel]) : []
  const owner = decideOwner(table, { name, labels: object?.labels }, tenants, map)
  const { method = 'POST', url = '/' } = request
  const connection = connectionTo(owner.partition)
  const headers = forwardedHeaders(request)
  const isDryRun = readTarget(url).searchParams.has('dryRun')
  const send = async (path: string, more?: Readonly<Record<string, string>>) => {
    const answer = await connection.stream({ method, path, user, headers: { ...headers, ...more }, body, signal })
    if (answer.status !== misdirected) return answer
    discardBody(answer.body)
    throw moved(owner)
  }
  const trial = await send(isDryRun ? url : `${url}${url.includes('?') ? '&' : '?'}dryRun=All`)
  if (isDryRun || trial.status >= 300) return trial
  for await (const _ of trial.body);
  const role = roleOf(table)
  if (!map.partitions.get(owner.partition)?.announced?.has(role)) await announceRole(owner.partition, role)
  return await createClaimed(
    owner.partition,
    () => claim(table, name, owner),
    more => send(url, more),
  )
}

/** The partition knows of a change of the routing map that this gateway does not know yet, or the other way round. */
function moved({ partition, tenant = '' }: ObjectOwner): StatusError {
  const why = `partition ${JSON.stringify(partition)} does not have Tenant ${JSON.stringify(tenant)}, which has moved a moment ago; retry`
  return new StatusError('ServiceUnavailable', why, { details: { retryAfterSeconds: 1 } })
}
