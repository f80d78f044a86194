import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Run, Worker } from '../../../api/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import type { Caches } from '../caches.ts'
import { epochMs, testRun, testWorker } from '../objects.testing.ts'
import { QueueController } from './queue-controller.ts'

const hourMs = 3_600_000

/** An ended Run of ten minutes. Its namespace is a tenant of its own. */
function ended(namespace: string, endedMs: number): Run {
  const run = testRun(`${namespace}-1`, { namespace, worker: 'w', atMs: endedMs - 600_000 })
  return { ...run, status: { phase: 'Succeeded', finishedAt: rfc3339(epochMs + endedMs) } }
}

/** A controller that starts at {@link epochMs} with these Runs in its cache. */
function controllerOf(runs: readonly Run[], worker?: Worker): QueueController {
  const empty = { list: () => [], get: () => undefined }
  const runsInformer = { list: () => runs, get: () => undefined }
  const workers = { list: () => [], get: (name: string) => (name === worker?.metadata.name ? worker : undefined) }
  const caches = { runs: runsInformer, workers, pools: empty, stacks: empty, tenants: empty, namespaces: empty }
  const controller = new QueueController(
    caches as unknown as Caches,
    () => epochMs,
    {},
    () => {},
  )
  controller.reset()
  controller.prepare()
  return controller
}

function usageMinutes({ queue }: QueueController): Record<string, number> {
  return Object.fromEntries([...queue.accounts()].map(account => [account.name, Math.round(queue.usageMs(account, epochMs) / 60_000)]))
}

test('a controller that starts restores recent usage from ended Runs, also when the first one ended weeks ago', () => {
  const controller = controllerOf([ended('idle', -24 * 20 * hourMs), ended('busy', 0), ended('calm', -hourMs / 4)])
  assert.deepEqual(usageMinutes(controller), { busy: 10, calm: 5 })
})

test('a time in the future is not charged', () => {
  const controller = controllerOf([ended('ahead', 24 * 365 * hourMs), ended('busy', 0)])
  assert.deepEqual(usageMinutes(controller), { busy: 10 })
  const run = testRun('later', { namespace: 'ahead', worker: 'w', atMs: 24 * 365 * hourMs })
  controller.observeRun(run)
  assert.deepEqual(usageMinutes(controller), { busy: 10, ahead: 1 })
  controller.observeRun({ ...run, status: { phase: 'Succeeded', finishedAt: rfc3339(epochMs + 24 * 3_650 * hourMs) } })
  assert.deepEqual(usageMinutes(controller), { busy: 10, ahead: 0 })
})

test('the total of a one-shot worker counts its own ended Runs, and not those of a previous worker of its name', () => {
  const current = controllerOf([ended('a', 0)], testWorker('w', { atMs: -hourMs }))
  assert.deepEqual(current.load.get('w'), { active: 0, total: 1 })
  const previous = controllerOf([ended('a', 0)], testWorker('w', { atMs: -60_000 }))
  assert.equal(previous.load.get('w'), undefined)
})
