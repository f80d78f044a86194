import { throws } from 'node:assert/strict'
import { test } from 'node:test'
import { durations, ElectionCluster } from './election.testing.ts'
import { LeaseHolder } from './index.ts'

// What it does over time is in testdata/; election-scenarios.test.ts plays it.

test('rejects durations that cannot be safe', () => {
  const cluster = new ElectionCluster()
  const store = cluster.store(cluster.contender('one'))
  const parts = { ...durations, leaseName: 'ctl', namespace: 'a', identity: 'x', store }
  throws(() => new LeaseHolder({ ...parts, renewDeadlineMs: 15_000 }), /leaseDurationMs 15000 must be > renewDeadlineMs 15000/)
})
