import { partitionResource } from '../../../src/gateway/index.ts'
import type { Client } from '../../../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../../../src/kubernetes/object/index.ts'
import { eventually } from '../eventually.ts'

/** Waits until a partition has reported that its kinds are those of home, which it compares every 30 seconds. */
export async function untilKindsMatch(client: Client, partition: string): Promise<void> {
  const doMatch = async () => isConditionTrue((await client.resource(partitionResource).get(partition)).status?.conditions, 'KindsMatch')
  await eventually(doMatch, `the comparison of the kinds of ${partition}`, 90_000)
}
