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

test('tokens that claim many namespaces have 20 lookups in a burst and 5 a second, and those of other networks are not delayed', async () => {
  const { partitions, asked, atHome, pass } = fixture()
  const ask = async (count: number) => {
    const before = asked.length
    const attempts = Array.from({ length: count }, (_, index) => partitions.partitionOf(`ns-${before}-${index}`, '10.0.0.1'))
    const errors = (await Promise.allSettled(attempts)).flatMap(result => (result.status === 'rejected' ? [result.reason] : []))
    for (const error of errors) equal(error.code, 429)
    return asked.length - before
  }
  equal(await ask(100), 20)
  equal(await ask(100), 0)
  pass(1_000)
  equal(await ask(100), 5)
  await rejects(partitions.partitionOf('umbrella', '10.0.0.1'), { code: 429, message: /namespace "umbrella" of the token is not known/ })
  atHome.set('umbrella', 't2')
  equal(await partitions.partitionOf('umbrella', '203.0.113.7'), 't2')
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
