import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '../../kubernetes/client/index.ts'
import { coerceError, type Log } from '../../kubernetes/controller/index.ts'
import { writeSecretFile } from '../../kubernetes/server/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { readServedPartition, requireNoGateway } from '../own-partition.ts'

/**
 * Binds the data directory of stores to the partition of their API server: the states in it are those of its Stacks. While the server does not answer
 * nothing is checked.
 * @throws {AppStartError} if the directory has the states of another partition, or the server is a gateway.
 */
export async function bindStores(client: Client, dataDir: string, log: Log): Promise<void> {
  const file = join(dataDir, 'partition')
  const bound = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined
  let name: string | undefined
  try {
    name = (await readServedPartition(client))?.name
    if (name !== undefined) await requireNoGateway(client)
  } catch (error) {
    if (error instanceof AppStartError) throw error
    log.warn({ err: coerceError(error) }, 'the partition of the stores is not checked')
    return
  }
  if (name === undefined || name === bound) return
  if (bound !== undefined)
    throw new AppStartError(
      'Partition',
      `${dataDir} has the states of partition ${JSON.stringify(bound)}, and the server ${client.server} is ${JSON.stringify(name)}`,
      `choose the kubeconfig of partition ${JSON.stringify(bound)}, or another directory with --data`,
    )
  writeSecretFile(file, `${name}\n`)
}
