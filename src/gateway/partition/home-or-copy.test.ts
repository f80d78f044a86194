import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../kubernetes/object/index.ts'
import { gatewayUser } from '../request/user-headers.ts'
import { HomeOrCopy } from './home-or-copy.ts'
import type { Partition, PartitionRequest } from './partition.ts'

const request: PartitionRequest = { method: 'GET', path: '/apis', user: gatewayUser }

/** `down`: partitions that do not answer. */
function fixture(copies: readonly string[]) {
  const asked: string[] = []
  const down = new Set<string>()
  const clock = { nowMs: 0 }
  const connectionOf = (name: string) =>
    ({
      name,
      send: async () => {
        asked.push(name)
        if (down.has(name)) throw new StatusError('ServiceUnavailable', `partition "${name}" does not answer`)
        return { status: 200, headers: {}, body: [] }
      },
    }) as unknown as Partition
  const sender = new HomeOrCopy({ home: () => 'home', copies: () => copies, connectionOf, nowMs: () => clock.nowMs })
  return { asked, down, clock, send: async () => (await sender.send(request)).partition }
}

test('home answers while it can', async () => {
  const { asked, send } = fixture(['t1'])
  equal(await send(), 'home')
  deepEqual(asked, ['home'])
})

test('another partition answers in place of home, which is asked again after ten seconds', async () => {
  const { asked, down, clock, send } = fixture(['t1', 't2'])
  down.add('home').add('t1')
  equal(await send(), 't2')
  deepEqual(asked.splice(0), ['home', 't1', 't2'])
  down.delete('t1')
  down.delete('home')
  clock.nowMs = 9_999
  equal(await send(), 't1')
  clock.nowMs = 10_000
  equal(await send(), 'home')
})

test('without a partition that answers the error names home', async () => {
  const { down, send } = fixture(['t1'])
  down.add('home').add('t1')
  await rejects(send(), /partition "home" does not answer/)
  await rejects(send(), /partition "home" does not answer/)
})
