import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { epochMs, testWorker } from './objects.testing.ts'
import { exampleForMs, WorkerTemplateCache } from './worker-template-cache.ts'

test('the last Worker of a pool stands for the next one, for a while after it is gone', () => {
  const examples = new WorkerTemplateCache()
  const names = (nowMs: number) => [...examples.at(nowMs).values()].map(({ metadata }) => metadata.name)
  const [a, b] = [testWorker('a'), testWorker('b')]
  examples.see(a)
  examples.see({ ...testWorker('silent', { pool: 'other' }), status: undefined })
  deepEqual(names(epochMs + 10 * exampleForMs), ['a'], 'as long as it is there')
  examples.see(b)
  examples.gone(a, epochMs)
  deepEqual(names(epochMs + exampleForMs), ['b'])
  examples.gone(b, epochMs)
  deepEqual(names(epochMs + exampleForMs - 1), ['b'])
  deepEqual(names(epochMs + exampleForMs), [])
  examples.see(b)
  examples.gone(b, epochMs)
  examples.see(a)
  deepEqual(names(epochMs + exampleForMs), ['a'], 'another one has come')
  examples.forget('default')
  deepEqual(names(epochMs), [])
})
