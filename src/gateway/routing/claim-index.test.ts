import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { claimName, type NameClaim } from '../kinds/kinds.ts'
import { ClaimIndex } from './claim-index.ts'

const claim = (resource: string, name: string, partition: string) =>
  ({ metadata: { name: claimName(resource, name) }, spec: { resource, name, partition } }) as NameClaim

test('which partitions have claims of a table is what a count of all claims says, after any changes', () => {
  const tables = ['namespaces', 'nodes', 'workers.oarlock.dev']
  const partitions = ['home', 't1', 'r1']
  const names = ['a', 'b', 'c']
  const index = new ClaimIndex()
  const expected = new Map<string, NameClaim>()
  let seed = 7
  const pick = <T>(from: readonly T[]): T => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return from[(seed >> 8) % from.length] as T
  }
  for (let step = 0; step < 2_000; step++) {
    const changed = claim(pick(tables), pick(names), pick(partitions))
    const { name: key } = changed.metadata
    const change = pick(['set', 'delete', 'delete', 'replace'])
    if (change === 'set') {
      index.set(changed)
      expected.set(key, changed)
    } else if (change === 'delete') {
      index.delete(key)
      expected.delete(key)
    } else if (step % 50 === 0) {
      expected.clear()
      expected.set(key, changed)
      index.replace([changed])
    }
    const all = [...expected.values()]
    for (const table of tables) {
      for (const partition of partitions)
        deepEqual(
          index.hasClaims(partition, table),
          all.some(({ spec }) => spec.partition === partition && spec.resource === table),
          `${partition} ${table} at step ${step}`,
        )
      for (const name of names) deepEqual(index.ownerOf(table, name)?.partition, expected.get(claimName(table, name))?.spec.partition)
    }
  }
})

test('a claim that is older than the known one is ignored', () => {
  const index = new ClaimIndex()
  const at = (version: string, partition: string) => {
    const { metadata, spec } = claim('namespaces', 'a', partition)
    return { metadata: { ...metadata, resourceVersion: version }, spec } as NameClaim
  }
  index.set(at('20', 't2'))
  index.set(at('10', 't1'))
  deepEqual(index.ownerOf('namespaces', 'a')?.partition, 't2')
  index.set(at('30', 't1'))
  deepEqual([index.hasClaims('t1', 'namespaces'), index.hasClaims('t2', 'namespaces')], [true, false])
})
