import { labels, mayHaveResources, type Run, runResource, type Stack } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { hasResources } from './choose-deletion.ts'

/** Whether the Stack may have resources, so that its destruction is planned: by its Runs, or by its status if the user may not list them. */
export async function readHasResources(client: Client, stack: Stack): Promise<boolean> {
  const runs = await readRuns(client, stack)
  return runs ? hasResources(stack, stack.status ?? {}, runs) : mayHaveResources(stack)
}

/** The Runs of the Stack, oldest first; undefined if the user may not list them. */
async function readRuns(client: Client, { metadata }: Stack): Promise<Run[] | undefined> {
  const { namespace, name, uid } = metadata
  try {
    const { items } = await client.resource(runResource).listAll({ namespace, labelSelector: `${labels.stack}=${name}` })
    return items.filter(({ spec }) => spec.stackRef.uid === uid).sort((a, b) => a.spec.epoch - b.spec.epoch)
  } catch (error) {
    if (isReason(error, 'Forbidden')) return undefined
    throw error
  }
}
