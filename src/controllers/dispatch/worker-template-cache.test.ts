import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { epochMs, testWorker } from './objects.testing.ts'
import { templateTtlMs, WorkerTemplateCache } from './worker-template-cache.ts'

test('the last Worker of a pool stands for the next one, for a while after it is gone', () => {
  const examples = new WorkerTemplateCache()
  const names = (nowMs: number) => [...examples.validAt(nowMs).values()].map(({ metadata }) => metadata.name)
  const [a, b] = [testWorker('a'), testWorker('b')]
  examples.observe(a)
  examples.observe({ ...testWorker('silent', { pool: 'other' }), status: undefined })
  deepEqual(names(epochMs + 10 * templateTtlMs), ['a'], 'as long as it is there')
  examples.observe(b)
  examples.workerDeleted(a, epochMs)
  deepEqual(names(epochMs + templateTtlMs), ['b'])
  examples.workerDeleted(b, epochMs)
  deepEqual(names(epochMs + templateTtlMs - 1), ['b'])
  deepEqual(names(epochMs + templateTtlMs), [])
  examples.observe(b)
  examples.workerDeleted(b, epochMs)
  examples.observe(a)
  deepEqual(names(epochMs + templateTtlMs), ['a'], 'another one has come')
  examples.invalidate('default')
  deepEqual(names(epochMs), [])
})
