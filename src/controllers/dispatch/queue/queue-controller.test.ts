import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Run, Worker } from '../../../api/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import type { Caches } from '../caches.ts'
import { epochMs, testRun, testWorker } from '../objects.testing.ts'
import { QueueController } from './queue-controller.ts'

const hourMs = 3_600_000

/** A Run of a namespace, which is a tenant of its own, that took ten minutes. */
function ended(namespace: string, endedMs: number): Run {
  const run = testRun(`${namespace}-1`, { namespace, worker: 'w', atMs: endedMs - 600_000 })
  return { ...run, status: { phase: 'Succeeded', finishedAt: rfc3339(epochMs + endedMs) } }
}

/** One that begins anew at {@link epochMs}, with just these Runs there. */
function controllerOf(runs: readonly Run[], worker?: Worker): QueueController {
  const nothing = { list: () => [], get: () => undefined }
  const there = { list: () => runs, get: () => undefined }
  const workers = { list: () => [], get: (name: string) => (name === worker?.metadata.name ? worker : undefined) }
  const caches = { runs: there, workers, pools: nothing, stacks: nothing, tenants: nothing, namespaces: nothing }
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

test('who begins anew knows what tenants used lately, also where the first Run it finds ended weeks ago', () => {
  const controller = controllerOf([ended('idle', -24 * 20 * hourMs), ended('busy', 0), ended('calm', -hourMs / 4)])
  assert.deepEqual(usageMinutes(controller), { busy: 10, calm: 5 })
})

test('a clock that is ahead charges nobody for what is to come', () => {
  const controller = controllerOf([ended('ahead', 24 * 365 * hourMs), ended('busy', 0)])
  assert.deepEqual(usageMinutes(controller), { busy: 10 })
  const run = testRun('later', { namespace: 'ahead', worker: 'w', atMs: 24 * 365 * hourMs })
  controller.observeRun(run)
  assert.deepEqual(usageMinutes(controller), { busy: 10, ahead: 1 })
  controller.observeRun({ ...run, status: { phase: 'Succeeded', finishedAt: rfc3339(epochMs + 24 * 3_650 * hourMs) } })
  assert.deepEqual(usageMinutes(controller), { busy: 10, ahead: 0 })
})

test('a one-shot worker has had the Runs that it was given, and not those of another one that had its name', () => {
  const had = controllerOf([ended('a', 0)], testWorker('w', { atMs: -hourMs }))
  assert.deepEqual(had.load.get('w'), { active: 0, total: 1 })
  const began = controllerOf([ended('a', 0)], testWorker('w', { atMs: -60_000 }))
  assert.equal(began.load.get('w'), undefined)
})
