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
  deepEqual((await sendToOwner('t1', { send, again, nodeAddress: never })).status, 200)
  deepEqual([sent, epochs], [['t1', 't2'], [7]])
})

test('a partition that does not have what the newest map says is an error after one retry', async () => {
  const epochs: number[] = []
  const again = async (epoch: number) => {
    epochs.push(epoch)
    return 't2'
  }
  const sending = sendToOwner('t1', { send: async () => misdirected(), again, nodeAddress: never })
  await rejects(sending, /partition "t2" does not have what the routing map says; retry/)
  deepEqual(epochs, [0])
})
