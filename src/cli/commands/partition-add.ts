import { resolve } from 'node:path'
import { partitions } from '../../app/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { writeSecretFile } from '../../kubernetes/server/index.ts'
import { dataDirectory } from '../access.ts'
import { dataError } from '../data-error.ts'
import { startError } from '../start-error.ts'
import { note, print } from '../terminal.ts'
import type { PartitionRole } from './partition-roles.ts'

export type AddPartitionOptions = { data?: string; roles?: PartitionRole[]; to?: string; ttl: string }

/** `oarlock partition add`: creates a Partition, or changes its roles, and writes what its server needs to start. */
export async function addPartition(name: string, { data, roles, to = `${name}.partition.json`, ttl }: AddPartitionOptions): Promise<void> {
  const { formatConfiguration, issuePartitionConfiguration } = await partitions()
  const file = resolve(to)
  try {
    const { configuration, roles: granted } = await issuePartitionConfiguration(
      dataDirectory(data),
      { name, roles, ttlMs: parseDuration(ttl) },
      Date.now(),
    )
    writeSecretFile(file, formatConfiguration(configuration))
    print(`partition ${name} has number ${configuration.number}; start its server with the keys in this file, on its machine:`)
    print(`  oarlock serve --partition ${file} --data <directory>`)
    if (granted.length === 0)
      note(`it has no role, so that nothing is created there: oarlock partition add ${name} --roles Tenants or Resources`)
  } catch (error) {
    throw startError(dataError(error), 'partition add')
  }
}
