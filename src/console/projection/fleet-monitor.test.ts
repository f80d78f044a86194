import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { Scaling } from '../protocol/index.ts'
import { FleetMonitor, type FleetMonitorSources } from './fleet-monitor.ts'

type Change = { readonly type: string; readonly object: unknown }

/** A cache that reports the changes that a test passes. */
function cache() {
  const handlers: ((change: Change) => void)[] = []
  return {
    onChange: ({ changed }: { changed(change: Change): void }) => handlers.push(changed),
    report: (object: object, type = 'updated') => {
      for (const handler of handlers) handler({ type, object })
    },
  }
}

const nowMs = Date.parse('2026-06-01T10:01:00Z')
const run = (name: string, phase: string | undefined, workerName?: string) => ({
  metadata: { name, namespace: 'a', creationTimestamp: '2026-06-01T10:00:00Z' },
  spec: { pool: 'default', ...(workerName !== undefined && { workerName }) },
  ...(phase !== undefined && { status: { phase } }),
})

function monitor() {
  const [runs, workers, pools] = [cache(), cache(), cache()]
  const scalings: Scaling[] = []
  const sources = { runs, workers, pools } as unknown as FleetMonitorSources
  return { runs, workers, pools, scalings, monitor: new FleetMonitor(sources, scaling => scalings.push(scaling)) }
}

test('counts queued and active Runs, and each Run that ends once', () => {
  const { runs, monitor: fleet } = monitor()
  runs.report(run('old', 'Succeeded'), 'added')
  runs.report(run('waits', undefined), 'added')
  for (const phase of ['Queued', 'Applying', 'Succeeded', 'Succeeded']) runs.report(run('ok', phase))
  for (const phase of ['Applying', 'Lost']) runs.report(run('lost', phase))
  for (const phase of ['Applying', 'Canceled']) runs.report(run('canceled', phase))
  runs.report(run('active', 'Planning'))
  runs.report(run('deleted', 'Queued'))
  runs.report(run('deleted', 'Queued'), 'deleted')
  const { queueLength, oldestQueuedMs, activeRuns, runsSucceeded, runsFailed } = fleet.sample(nowMs)
  deepEqual([queueLength, oldestQueuedMs, activeRuns, runsSucceeded, runsFailed], [2, 60_000, 1, 1, 1])

  const next = fleet.sample(nowMs)
  deepEqual([next.runsSucceeded, next.runsFailed, next.queueLength], [0, 0, 1])
})

test('counts workers, and the numbers of each pool with the changes of its size', () => {
  const { runs, workers, pools, scalings, monitor: fleet } = monitor()
  const pool = (desired: number) => ({
    metadata: { name: 'default' },
    spec: { min: 0, max: 2 },
    status: { desired, queued: 3, busy: 1, workers: 1 },
  })
  const worker = (name: string) => ({ metadata: { name }, spec: { pool: 'default' } })
  workers.report(worker('w1'))
  workers.report(worker('w2'))
  runs.report(run('active', 'Applying', 'w1'))
  workers.report(worker('w3'))
  workers.report(worker('w3'), 'deleted')
  for (const desired of [0, 2, 2]) pools.report(pool(desired))
  const sample = fleet.sample(nowMs)
  deepEqual(
    [sample.workers, sample.busyWorkers, sample['pool/default/workers'], sample['pool/default/busy'], sample['pool/default/desired']],
    [3, 1, 3, 1, 2],
  )
  deepEqual(fleet.sample(nowMs).workers, 2, 'the highest value of the next interval')
  deepEqual(
    scalings.map(({ atMs: _, ...rest }) => rest),
    [{ pool: 'default', from: 0, to: 2, min: 0, max: 2, queued: 3, busy: 1 }],
  )
  pools.report(pool(2), 'deleted')
  deepEqual(fleet.sample(nowMs)['pool/default/desired'], undefined)
})

test('a worker is busy while an active Run names it, however short, and once for all its Runs', () => {
  const { runs, monitor: fleet } = monitor()
  const busy = () => {
    const { busyWorkers, 'pool/default/busy': ofPool } = fleet.sample(nowMs)
    return [busyWorkers, ofPool]
  }
  runs.report(run('short', 'Queued'))
  runs.report(run('short', 'Queued', 'w1'))
  runs.report(run('short', 'Succeeded', 'w1'))
  deepEqual(busy(), [1, 1], 'the highest value of the interval in which it ended')
  deepEqual(busy(), [0, 0])
  for (const [name, worker] of [
    ['one', 'w1'],
    ['two', 'w1'],
    ['three', 'w2'],
  ] as const)
    for (const phase of ['Queued', 'Applying']) runs.report(run(name, phase, worker))
  deepEqual(busy(), [2, 2])
  runs.report(run('one', 'Failed', 'w1'))
  runs.report(run('three', 'Applying', 'w2'), 'deleted')
  busy()
  deepEqual(busy(), [1, 1])
  runs.report(run('two', 'Canceled', 'w1'))
  busy()
  deepEqual(busy(), [0, 0])
})
