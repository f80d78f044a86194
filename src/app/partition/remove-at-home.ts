import { setTimeout as sleep } from 'node:timers/promises'
import { nameClaimResource, partitionResource } from '../../gateway/index.ts'
import { findCondition, isReason } from '../../kubernetes/object/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { homeOf } from './home-of.ts'
import { recordRemoval } from './record-removal.ts'

export type RemoveAtHomeOptions = {
  readonly name: string
  /** Its server and its objects are lost for good: their names are free again. Default: its server removes it when it has nothing. */
  readonly isLost: boolean
  /** Called when what the deletion waits for has changed. */
  onWaiting(reason: string): void
  readonly signal: AbortSignal
}

const checkEveryMs = 1_000
const silentMs = 10_000

/**
 * Deletes a Partition at home, and waits until it is gone.
 * @param dataDir that of home.
 * @returns how many names of lost objects are free again.
 * @throws {AppStartError} if home does not run, or does not have the Partition.
 */
export async function removeAtHome(dataDir: string, { name, isLost, onWaiting, signal }: RemoveAtHomeOptions): Promise<number> {
  const home = await homeOf(dataDir)
  try {
    if (name === home.name)
      throw new AppStartError('Configuration', `${JSON.stringify(name)} is home itself, which has the other partitions`, 'name another one')
    const partitions = home.client.resource(partitionResource)
    try {
      await partitions.delete(name)
    } catch (error) {
      if (!isReason(error, 'NotFound')) throw error
      throw new AppStartError('Configuration', `home has no partition ${JSON.stringify(name)}`, 'see "oarlock get partitions"')
    }
    if (isLost) {
      // No gateway gets a new claim for a Partition that is being deleted.
      const claims = home.client.resource(nameClaimResource)
      const { items } = await claims.listAll({})
      const lost = items.filter(({ spec }) => spec.partition === name)
      for (const claim of lost)
        await claims.delete(claim.metadata.name, { preconditions: { uid: claim.metadata.uid } }).catch(error => {
          if (!isReason(error, 'NotFound', 'Conflict')) throw error
        })
      const { metadata } = await claims.list({ limit: 1 })
      await recordRemoval(home.client, { name, homeName: home.name, version: Number(metadata.resourceVersion), signal })
      return lost.length
    }
    let reported: string | undefined
    for (const startMs = Date.now(); ; ) {
      const partition = await partitions.getOrUndefined(name, { signal })
      if (!partition) return 0
      const remaining = findCondition(partition.status?.conditions, 'ContentRemaining')?.message
      const isSilent = Date.now() - startMs > silentMs
      const reason =
        remaining ?? (isSilent ? 'its server has not answered: start it, or use --lost if its objects are lost for good' : undefined)
      if (reason !== undefined && reason !== reported) onWaiting(reason)
      reported = reason
      await sleep(checkEveryMs, undefined, { signal })
    }
  } finally {
    await home.client.close()
  }
}
