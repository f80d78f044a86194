import { systemNamespace } from '../api/index.ts'
import { type Client, type ConfigMapBody, configMapResource } from '../kubernetes/client/index.ts'
import { isReason, type KubeObject } from '../kubernetes/object/index.ts'
import { AppStartError } from './app-start-error.ts'
import { isGateway } from './is-gateway.ts'
import { isPartition } from './is-partition.ts'

/** By which an API server reports its partition, and a backup which data directory it is of. */
export const ownPartitionName = 'oarlock-partition'

export type OwnPartition = {
  readonly name: string
  readonly number: number
  /** Id of its data directory. */
  readonly id: string
}

/** Writes into a server which partition it is. */
export async function recordOwnPartition(client: Client, { name, number, id }: OwnPartition): Promise<void> {
  const data = { name, number: String(number), dataDirectory: id }
  await client
    .resource(configMapResource)
    .apply({ metadata: { namespace: systemNamespace, name: ownPartitionName }, data }, { force: true })
}

/** What an object says about the partition of its server; undefined for one that does not say it. */
export function ownPartitionOf(resource: string, { metadata, ...body }: KubeObject): OwnPartition | undefined {
  if (resource !== configMapResource.plural || metadata.namespace !== systemNamespace || metadata.name !== ownPartitionName)
    return undefined
  return parseOwnPartition((body as ConfigMapBody).data)
}

function parseOwnPartition(data: Readonly<Record<string, string>> | undefined): OwnPartition | undefined {
  const { name, number, dataDirectory: id } = data ?? {}
  return name && id && /^[0-9]{1,2}$/.test(number ?? '') ? { name, number: Number(number), id } : undefined
}

/** Which partition the server is; undefined: none, or one of an earlier version. */
export async function readServedPartition(client: Client): Promise<OwnPartition | undefined> {
  try {
    return parseOwnPartition((await client.resource(configMapResource).get(ownPartitionName, { namespace: systemNamespace })).data)
  } catch (error) {
    if (isReason(error, 'NotFound', 'Forbidden')) return undefined
    throw error
  }
}

/**
 * Checks that a role is not connected to a gateway, which reports that it is home and shows the objects of all partitions.
 * @throws {AppStartError} if it is.
 */
export async function requireNoGateway(client: Client): Promise<void> {
  if (!(await isGateway(client))) return
  throw new AppStartError(
    'Partition',
    `the server ${client.server} is a gateway, which has the objects of all partitions`,
    'choose the kubeconfig of the API server of one partition; that of the gateway is for --workers-kubeconfig',
  )
}

/**
 * Checks that controllers work for the partition that they are meant for: those of another one would start its Runs, and fence those that it has started.
 * @param named the partition that the user has named; undefined: none.
 * @throws {AppStartError} if the server is a gateway or another partition, or is one of several and none is named.
 */
export async function requireNamedPartition(client: Client, named: string | undefined): Promise<void> {
  const served = await readServedPartition(client)
  if (named === undefined && !served && !(await isPartition(client))) return
  await requireNoGateway(client)
  if (named === undefined) {
    const which = served ? `partition ${JSON.stringify(served.name)}` : 'one'
    throw new AppStartError(
      'Partition',
      `the server ${client.server} is ${which} of several behind a gateway, and no partition is named`,
      `start with --partition ${served?.name ?? 'NAME'} --workers-kubeconfig FILE, the kubeconfig of the gateway`,
    )
  }
  if (served && served.name !== named)
    throw new AppStartError(
      'Partition',
      `the server ${client.server} is partition ${JSON.stringify(served.name)}, and not ${JSON.stringify(named)}`,
      `choose the kubeconfig of partition ${JSON.stringify(named)}, or --partition ${served.name}`,
    )
}
