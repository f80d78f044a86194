import { partitions } from '../../app/index.ts'
import { dataDirectory } from '../access.ts'
import { dataError } from '../data-error.ts'
import { startError } from '../start-error.ts'
import { confirm, note, print } from '../terminal.ts'

export type RemovePartitionOptions = { data?: string; lost?: boolean; yes?: boolean }

/** `oarlock partition remove`: deletes a Partition, and waits until its server has removed it. */
export async function removePartition(name: string, { data, lost: isLost = false, yes = false }: RemovePartitionOptions): Promise<void> {
  const { removeAtHome } = await partitions()
  if (isLost)
    await confirm(
      `give up partition ${name}? All objects that it had are gone for clients, and their names can be used again. Its server must never run again.`,
      { yes },
    )
  try {
    const freed = await removeAtHome(dataDirectory(data), {
      ...{ name, isLost, signal: new AbortController().signal },
      onWaiting: reason => note(`partition ${name} is being deleted: ${reason}`),
    })
    print(`partition ${name} was removed${isLost ? `; ${freed} names are free again` : ''}`)
  } catch (error) {
    throw startError(dataError(error), 'partition remove')
  }
}
