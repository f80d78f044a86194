import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import type { LeaseBody } from '../client/index.ts'
import type { KubeObject, NewObject } from '../object/index.ts'
import { durations, ElectionCluster } from './election.testing.ts'
import { LeaseHolder } from './index.ts'

// What it does over time is in testdata/; election-scenarios.test.ts plays it.

test('rejects durations that cannot be safe', () => {
  const cluster = new ElectionCluster()
  const store = cluster.store(cluster.contender('one'))
  const parts = { ...durations, leaseName: 'ctl', namespace: 'a', identity: 'x', store }
  throws(() => new LeaseHolder({ ...parts, renewDeadlineMs: 15_000 }), /leaseDurationMs 15000 must be > renewDeadlineMs 15000/)
})

test('the holder publishes its annotations with each renewal, and keeps those of others', async () => {
  let stored: KubeObject<LeaseBody> | undefined
  const published: (string | undefined)[] = []
  const write = async (lease: NewObject<LeaseBody>) => {
    stored = { ...lease, metadata: { ...lease.metadata, uid: 'u' } } as KubeObject<LeaseBody>
    published.push(stored.metadata.annotations?.load)
    if (published.length === 3) stopping.abort()
    return stored
  }
  const stopping = new AbortController()
  let load = 0
  const holder = new LeaseHolder({
    ...{ leaseName: 'ctl', namespace: 'a', identity: 'x', leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 1 },
    store: { read: async () => stored, create: write, update: write },
    annotations: () => {
      if (++load === 2) throw new Error('not known')
      return { load: String(load) }
    },
  })
  stored = { metadata: { name: 'ctl', namespace: 'a', uid: 'u', annotations: { note: 'kept' } } } as unknown as KubeObject<LeaseBody>
  await holder.run(stopping.signal, { onGained: () => {}, onLost: () => {} })
  // What is published last stays, where the function throws.
  deepEqual(published.slice(0, 3), ['1', '1', '3'])
  deepEqual(stored?.metadata.annotations?.note, 'kept')
  deepEqual(stored?.spec?.holderIdentity, '')
})
