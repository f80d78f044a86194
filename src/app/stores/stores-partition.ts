import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '../../kubernetes/client/index.ts'
import { coerceError, type Log } from '../../kubernetes/controller/index.ts'
import { writeSecretFile } from '../../kubernetes/server/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { readServedPartition, requireNamedPartition } from '../own-partition.ts'

/**
 * Binds the data directory of stores to the partition of their API server: the states in it are those of its Stacks. A directory that is bound is checked
 * only if the server answers; the first start with a named partition needs it.
 * @param named the partition that the user has named; undefined: none, which a directory needs that is not bound yet.
 * @throws {AppStartError} if the directory has the states of another partition, the server is another one or a gateway, or none is named.
 */
export async function bindStores(client: Client, dataDir: string, named: string | undefined, log: Log): Promise<void> {
  const file = join(dataDir, 'partition')
  const bound = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined
  const rejected = (actual: string) =>
    new AppStartError(
      'Partition',
      `${dataDir} has the states of partition ${JSON.stringify(bound)}, and ${actual}`,
      `choose the kubeconfig of partition ${JSON.stringify(bound)}, or another directory with --data`,
    )
  if (bound !== undefined && named !== undefined && named !== bound) throw rejected(`--partition is ${JSON.stringify(named)}`)
  let name: string | undefined
  try {
    name = (await readServedPartition(client))?.name
    if (name !== undefined && bound !== undefined && name !== bound)
      throw rejected(`the server ${client.server} is ${JSON.stringify(name)}`)
    await requireNamedPartition(client, named ?? bound)
  } catch (error) {
    if (error instanceof AppStartError || (bound === undefined && named !== undefined)) throw error
    log.warn({ err: coerceError(error) }, 'the partition of the stores is not checked')
    return
  }
  if (name !== undefined && bound === undefined) writeSecretFile(file, `${name}\n`)
}
