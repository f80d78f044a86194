import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { respondToRequests, ThreadRequests } from './thread-requests.ts'

test('matches each response to its request when responses overtake each other', async t => {
  const { port1, port2 } = new MessageChannel()
  t.after(() => port1.close())
  const first = Promise.withResolvers<void>()
  respondToRequests(port2, async (text: string) => {
    if (text === 'a') await first.promise
    else first.resolve()
    return text.toUpperCase()
  })
  const requests = new ThreadRequests<string, string>(port1)
  const order: string[] = []
  const [a, b] = ['a', 'b'].map(text => requests.send(text).then(response => order.push(response)))
  equal(requests.pending, 2)
  await Promise.all([a, b])
  deepEqual(order, ['B', 'A'])
  equal(requests.pending, 0)
})

test('carries requests in both directions of one port', async t => {
  const { port1, port2 } = new MessageChannel()
  t.after(() => port1.close())
  const back = new ThreadRequests<number, number>(port2)
  respondToRequests(port2, async (value: number) => (await back.send(value)) + 1)
  respondToRequests(port1, (value: number) => value * 10)
  equal(await new ThreadRequests<number, number>(port1).send(4), 41)
})

test('rejects pending and later requests once the other end has failed', async t => {
  const { port1 } = new MessageChannel()
  t.after(() => port1.close())
  const requests = new ThreadRequests<string, string>(port1)
  const pending = requests.send('a')
  requests.fail(new Error('out of memory'))
  await rejects(pending, /out of memory/)
  await rejects(requests.send('b'), /out of memory/)
})
