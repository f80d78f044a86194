import { deepEqual, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { sendToOwner } from './send-to-owner.ts'

async function* bodyOf(status: object) {
  yield Buffer.from(JSON.stringify(status))
}
const misdirected = (epoch?: number) => ({
  ...{ status: 421, headers: {} },
  body: bodyOf({ details: epoch === undefined ? {} : { causes: [{ field: 'mapEpoch', message: String(epoch) }] } }),
})
const rest = { isCurrent: () => true, namespace: 'shop' }
const never = async () => {
  throw new Error('no Node is asked for')
}

test('a request that a partition does not own is sent once to the owner by a map that is as new as that of the partition', async () => {
  const sent: string[] = []
  const send = async (partition: string) => {
    sent.push(partition)
    return partition === 't1' ? misdirected(7) : { status: 200, headers: {}, body: bodyOf({}) }
  }
  const epochs: number[] = []
  const again = async (epoch: number) => {
    epochs.push(epoch)
    return 't2'
  }
  deepEqual((await sendToOwner('t1', { send, again, ...rest, nodeAddress: never })).status, 200)
  deepEqual([sent, epochs], [['t1', 't2'], [7]])
})

test('a partition that does not have what the newest map says is an error after one retry', async () => {
  const epochs: number[] = []
  const again = async (epoch: number) => {
    epochs.push(epoch)
    return 't2'
  }
  const sending = sendToOwner('t1', { send: async () => misdirected(), again, ...rest, nodeAddress: never })
  await rejects(sending, /partition "t2" does not have what the routing map says; retry/)
  deepEqual(epochs, [0])
})

for (const { name, epoch, isCurrent = true, next = 't1', code } of [
  { name: 'a namespace that the partition of its claim does not have is not found', epoch: 7, code: 404 },
  { name: 'a partition that has not copied the Partitions of home cannot know it', epoch: undefined, code: 503 },
  { name: 'a map that is older than that of the partition cannot know it', epoch: 7, isCurrent: false, code: 503 },
  { name: 'a namespace whose claim has changed meanwhile is asked for again', epoch: 7, next: 't2', code: 503 },
])
  test(name, async () => {
    const send = async () => misdirected(epoch)
    const request = { send, again: async () => next, isCurrent: () => isCurrent, namespace: 'shop', nodeAddress: never }
    await rejects(sendToOwner('t1', request), { code })
  })
