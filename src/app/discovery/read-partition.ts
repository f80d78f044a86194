import { partitionResource } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { areInDifferentPartitions, partitionNumberOf } from '../../kubernetes/util/index.ts'

/** Where the API server of a partition is. */
export type PartitionAddress = { readonly name: string; readonly server: string; readonly caCertificate: string | undefined }

/**
 * The partition that has assigned a resource version, if the server is one of several or their gateway; undefined for another server, and for a partition
 * that has never been started.
 */
export async function readPartitionOf(client: Client, resourceVersion: string): Promise<PartitionAddress | undefined> {
  let partitions: Awaited<ReturnType<typeof listPartitions>>
  try {
    partitions = await listPartitions(client)
  } catch (error) {
    // Another server has no such kind, or no one may read it.
    if (isReason(error, 'NotFound', 'Forbidden')) return undefined
    throw error
  }
  const number = partitionNumberOf(resourceVersion)
  const found = partitions.find(({ spec }) => spec.number === number)
  if (found?.spec.server === undefined) return undefined
  return { name: found.metadata.name, server: found.spec.server, caCertificate: found.spec.caCertificate }
}

const listPartitions = async (client: Client) => (await client.resource(partitionResource).listAll({})).items

/** Whether the same partition has assigned both versions; true for versions of another server. */
export const isSamePartition = (version: string, other: string): boolean => !areInDifferentPartitions(version, other)
