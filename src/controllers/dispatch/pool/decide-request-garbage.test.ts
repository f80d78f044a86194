import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { Worker } from '../../../api/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import { epochMs, testWorker } from '../objects.testing.ts'
import { decideRequestGarbage } from './decide-request-garbage.ts'

type Phase = NonNullable<Worker['status']>['phase']

function requestOf(name: string, phase: Phase): Worker {
  const worker = testWorker(name, { pool: 'p', status: { phase } })
  return { ...worker, metadata: { ...worker.metadata, creationTimestamp: rfc3339(epochMs) } }
}

const decide = (atMs: number, requests: Record<string, Phase>) => {
  const workers = Object.entries(requests).map(([name, phase]) => requestOf(name, phase))
  const { remove, unclaimed, requeueAfterMs } = decideRequestGarbage(workers, epochMs + atMs)
  return [remove.map(({ metadata }) => metadata.name), unclaimed.map(({ worker }) => worker.metadata.name), requeueAfterMs]
}

test('a request that no host has claimed for 10 s is reported and remains', () => {
  deepEqual(decide(0, { w: 'Pending' }), [[], [], 10_000])
  deepEqual(decide(9_999, { w: 'Pending' }), [[], [], 1])
  deepEqual(decide(10_000, { w: 'Pending' }), [[], ['w'], undefined])
})

test('a failed request is deleted, a claimed one is neither deleted nor reported', () => {
  deepEqual(decide(0, { f: 'Failed', s: 'Starting' }), [['f'], [], undefined])
  deepEqual(decide(60_000, { s: 'Starting', p: 'Pending' }), [[], ['p'], undefined])
})
