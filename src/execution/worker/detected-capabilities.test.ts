import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { maxCacheKeys, type Run } from '../../api/index.ts'
import { DetectedCapabilities } from './detected-capabilities.ts'
import { noCapabilities } from './worker-capabilities.ts'

function create(configured: Partial<typeof noCapabilities>, once = false) {
  let changes = 0
  const capabilities = new DetectedCapabilities({
    configured: { ...noCapabilities, ...configured },
    once,
    onChange: async () => void changes++,
    onError: error => {
      throw error
    },
  })
  return { capabilities, changes: () => changes }
}

const runFrom = (url: string) => ({ spec: { stack: { engine: 'terraform', source: { git: { url } } } } }) as unknown as Run

test('reports an engine whose version changed, or that was removed, once', () => {
  const { capabilities, changes } = create({ engines: { terraform: '1.11.4' } })
  for (const version of ['1.11.4', '1.12.0', '1.12.0', undefined, undefined]) capabilities.recordEngine('terraform', version)
  equal(changes(), 2)
  deepEqual(capabilities.status.engines, { terraform: null })
})

test('reports no engine before its engines are known: a partial list would exclude the worker from Runs it could execute', () => {
  const { capabilities, changes } = create({})
  capabilities.recordEngine('terraform', '1.11.4')
  deepEqual([changes(), capabilities.status.engines], [0, undefined])
})

test('keeps the newest sources, without duplicates and with a bound (invariant 10)', () => {
  const { capabilities } = create({})
  for (let index = 0; index < maxCacheKeys + 3; index++) capabilities.recordSource(runFrom(`https://example.com/${index}`))
  const { caches = [] } = capabilities.status
  equal(caches.length, maxCacheKeys)
  capabilities.recordSource(runFrom('https://example.com/5'))
  equal(new Set(capabilities.status.caches).size, maxCacheKeys)
  deepEqual(
    capabilities.status.caches?.at(-1),
    caches.find((_, index) => index === 5 - 3),
  )
})

test('a one-shot worker reports no sources: it exits with its Run', () => {
  const { capabilities } = create({}, true)
  capabilities.recordSource(runFrom('https://example.com/a'))
  deepEqual(capabilities.status.caches, [])
})

test('detects nothing that was configured', async () => {
  const { capabilities, changes } = create({ engines: { command: 'built in' }, isolation: ['Process'] })
  await capabilities.detectIsolation()
  await capabilities.detectEngines()
  equal(changes(), 0)
})
