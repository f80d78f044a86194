import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { epochMs, testWorker } from './objects.testing.ts'
import { templateTtlMs, WorkerTemplateCache } from './worker-template-cache.ts'

test('the last Worker of a pool is its template until 5 minutes after its deletion', () => {
  const templates = new WorkerTemplateCache()
  const names = (nowMs: number) => [...templates.validAt(nowMs).values()].map(({ metadata }) => metadata.name)
  const [a, b] = [testWorker('a'), testWorker('b')]
  templates.observe(a)
  templates.observe({ ...testWorker('without-status', { pool: 'other' }), status: undefined })
  deepEqual(names(epochMs + 10 * templateTtlMs), ['a'], 'a template does not expire while its Worker exists')
  templates.observe(b)
  templates.workerDeleted(a, epochMs)
  deepEqual(names(epochMs + templateTtlMs), ['b'])
  templates.workerDeleted(b, epochMs)
  deepEqual(names(epochMs + templateTtlMs - 1), ['b'])
  deepEqual(names(epochMs + templateTtlMs), [])
  templates.observe(b)
  templates.workerDeleted(b, epochMs)
  templates.observe(a)
  deepEqual(names(epochMs + templateTtlMs), ['a'], 'a new Worker replaces the expired template')
  templates.invalidate('default')
  deepEqual(names(epochMs), [])
})
