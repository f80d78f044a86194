import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { notFound, type Status, StatusError } from '../../kubernetes/object/index.ts'
import type { Partition } from '../partition/index.ts'
import type { GatewayUser } from '../request/index.ts'
import type { GatewayMap } from './gateway-map.ts'

export const misdirected = 421
const maxStatusBytes = 64 * 1024

/** What a request is sent with, and how the gateway finds out what a partition does not know. */
export type OwnerRequest<Answer> = {
  /** With headers for the partition, besides those of the client. */
  send(partition: string, headers: Readonly<Record<string, string>>): Promise<Answer>
  /** Reads the map again, at least as new as `epoch`, and decides again. */
  again(epoch: number): Promise<string | undefined>
  /** Whether the map is as new as `epoch`, which {@link again} may not have waited for. */
  isCurrent(epoch: number): boolean
  /** That of the request. */
  readonly namespace: string
  /** @throws {StatusError} NotFound if no partition has the Node. */
  nodeAddress(node: string): Promise<string>
}

/**
 * Sends a request to the partition that owns what it is about. A partition that rejects it as misdirected has done nothing, so that it is sent
 * again: to the partition of a newer map, or with the address of the Node that the partition does not have. At most once each.
 * @throws {StatusError} NotFound if the newest map names the same partition: the namespace was deleted, and its claim was not yet. ServiceUnavailable if a
 * partition has not copied the Partitions of home, or the map is not as new as its copies: then it may not be the one that has the namespace.
 */
export async function sendToOwner<Answer extends { readonly status: number }>(
  owner: string,
  { send, again, isCurrent, namespace, nodeAddress }: OwnerRequest<Answer | TransportStreamResponse>,
): Promise<Answer | TransportStreamResponse> {
  let partition = owner
  let headers: Readonly<Record<string, string>> = {}
  let isRead = false
  for (;;) {
    const answer = await send(partition, headers)
    if (answer.status !== misdirected || !('body' in answer)) return answer
    const { node, epoch } = await readReason(answer.body)
    if (node !== undefined && !('x-oarlock-node-address' in headers)) {
      headers = { 'x-oarlock-node-address': await nodeAddress(node) }
      continue
    }
    const next = isRead || node !== undefined ? undefined : await again(epoch)
    isRead = true
    if (next === partition && epoch > 0 && isCurrent(epoch)) throw notFound({ group: '', plural: 'namespaces' }, namespace)
    if (next === undefined || next === partition) throw outdated(partition)
    partition = next
  }
}

/** Where the kubelet of a Node listens, as a partition reads it. @throws {StatusError} NotFound, ServiceUnavailable. */
export async function findNode(
  node: string,
  { map, connection, user, signal }: { map: GatewayMap; connection(name: string): Partition; user: GatewayUser; signal?: AbortSignal },
): Promise<string> {
  const partition = map.partitionOf('nodes', node)
  if (partition === undefined) {
    const { message, ...rest } = notFound({ group: '', plural: 'nodes' }, node)
    throw new StatusError('NotFound', `${message}: no partition has the node of this pod`, { details: rest.details })
  }
  const { host, port } = await connection(partition).kubeletOf(user, node, signal)
  return `${node} ${host} ${port}`
}

/** Why a partition has rejected a request: the Node that it does not have, or what of the map it knows (0: nothing). */
async function readReason(body: AsyncIterable<Uint8Array>): Promise<{ readonly node?: string | undefined; readonly epoch: number }> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxStatusBytes) return { epoch: 0 }
    chunks.push(chunk)
  }
  try {
    const { details } = JSON.parse(Buffer.concat(chunks).toString()) as Status
    const epoch = Number(details?.causes?.find(({ field }) => field === 'mapEpoch')?.message ?? 0) || 0
    return { node: details?.kind === 'nodes' ? details.name : undefined, epoch }
  } catch {
    return { epoch: 0 }
  }
}

const outdated = (partition: string) =>
  new StatusError('ServiceUnavailable', `partition ${JSON.stringify(partition)} does not have what the routing map says; retry`, {
    details: { retryAfterSeconds: 1 },
  })
