import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { metricsOn } from '../../kubernetes/controller/metrics.ts'
import { readControllerMetrics } from './controller-metrics.ts'

test('all controllers of a process are shown, with their reconciles and how long these took', async () => {
  const registry = new Registry()
  deepEqual(await readControllerMetrics(registry), [])
  const metrics = await metricsOn(registry)
  metrics.controller('stack', 4)
  metrics.controller('disruption', 1)
  for (let index = 0; index < 98; index++) metrics.reconciled('stack', 'success', 0.02, false)
  for (const seconds of [0.3, 55]) metrics.reconciled('stack', 'error', seconds, false)
  deepEqual(await readControllerMetrics(registry), [
    { name: 'stack', reconciles: 100, errors: 2, queued: 0, p50Ms: 25, p99Ms: 300 },
    { name: 'disruption', reconciles: 0, errors: 0, queued: 0 },
  ])
})
