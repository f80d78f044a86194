import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { AccountPartitions } from './account-partitions.ts'

function fixture() {
  const known = new Map([['acme', 't1']])
  const atHome = new Map<string, string>()
  const asked: string[] = []
  let waiting: Promise<unknown> = Promise.resolve()
  let now = 0
  const partitions = new AccountPartitions({
    partitionOf: namespace => known.get(namespace),
    async lookUp(namespace) {
      asked.push(namespace)
      await waiting
      const partition = atHome.get(namespace)
      if (partition !== undefined) known.set(namespace, partition)
    },
    nowMs: () => now,
  })
  return {
    ...{ partitions, atHome, asked },
    pass: (ms: number) => {
      now += ms
    },
    holdBack: (until: Promise<unknown>) => {
      waiting = until
    },
  }
}

test('home is asked about a namespace that the gateway does not know, and about no other', async () => {
  const { partitions, atHome, asked } = fixture()
  equal(await partitions.partitionOf('acme', '10.0.0.1'), 't1')
  deepEqual(asked, [])
  atHome.set('umbrella', 't2')
  equal(await partitions.partitionOf('umbrella', '10.0.0.1'), 't2')
  equal(await partitions.partitionOf('umbrella', '10.0.0.1'), 't2')
  deepEqual(asked, ['umbrella'])
})

test('a namespace that no partition has is asked about once a second', async () => {
  const { partitions, asked, atHome, pass } = fixture()
  const results = await Promise.all(Array.from({ length: 50 }, () => partitions.partitionOf('late', '10.0.0.1')))
  deepEqual(new Set(results), new Set([undefined]))
  atHome.set('late', 't1')
  equal(await partitions.partitionOf('late', '10.0.0.1'), undefined)
  deepEqual(asked, ['late'])
  pass(1_001)
  equal(await partitions.partitionOf('late', '10.0.0.1'), 't1')
  deepEqual(asked, ['late', 'late'])
})

test('what is no name of a namespace is never asked about', async () => {
  const { partitions, asked } = fixture()
  for (const namespace of ['', 'A', 'a/b', '../x', '-a', 'a'.repeat(64), 'a\n'])
    equal(await partitions.partitionOf(namespace, '10.0.0.1'), undefined)
  deepEqual(asked, [])
})

test('tokens that claim many namespaces have at most 4 reads of home in progress for a network, and others are served', async () => {
  const { partitions, asked, atHome, holdBack } = fixture()
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  holdBack(held)
  const attempts = Array.from({ length: 100 }, (_, index) => partitions.partitionOf(`ns-${index}`, '10.0.0.1'))
  const settled = Promise.allSettled(attempts)
  equal(asked.length, 4)
  await rejects(partitions.partitionOf('one-more', '10.0.0.1'), { code: 429, message: /namespace "one-more" of the token is not known/ })
  atHome.set('umbrella', 't2')
  const other = partitions.partitionOf('umbrella', '203.0.113.7')
  equal(asked.at(-1), 'umbrella')
  release()
  equal(await other, 't2')
  const rejected = (await settled).filter(({ status }) => status === 'rejected')
  equal(rejected.length, 100 - 4 - 64)
})

test('when home does not answer, the error is not remembered', async () => {
  const { partitions, atHome, holdBack } = fixture()
  const down = Promise.reject(new Error('home does not answer'))
  holdBack(down)
  await rejects(partitions.partitionOf('umbrella', '10.0.0.1'), /home does not answer/)
  holdBack(Promise.resolve())
  atHome.set('umbrella', 't2')
  equal(await partitions.partitionOf('umbrella', '10.0.0.1'), 't2')
})
