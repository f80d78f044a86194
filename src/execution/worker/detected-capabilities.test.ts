import { deepEqual, equal } from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { dependencyCacheKey, maxCacheKeys, type Run } from '../../api/index.ts'
import { sha256 } from '../../kubernetes/util/index.ts'
import { DetectedCapabilities } from './detected-capabilities.ts'
import { noCapabilities } from './worker-capabilities.ts'

function create(configured: Partial<typeof noCapabilities>, once = false, cacheDir = '/nowhere') {
  let changes = 0
  const capabilities = new DetectedCapabilities({
    configured: { ...noCapabilities, ...configured },
    once,
    cacheDir,
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

test('reports the dependencies that the host has installed, the most recently used last, then those of its Runs', async t => {
  const cacheDir = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
  t.after(() => rmSync(cacheDir, { recursive: true }))
  for (const [domain, name, usedAt] of [
    ['namespace-a', 'new', 3],
    ['namespace-a', 'old', 1],
    ['namespace-b', 'middle', 2],
    ['namespace-b', 'new', 2],
  ] as const) {
    const entry = join(cacheDir, 'dependencies', domain, sha256(name))
    mkdirSync(entry, { recursive: true })
    const record = { formatVersion: 1, digest: sha256(name), trees: [], produced: [], manifestDigest: '', bytes: 1 }
    writeFileSync(join(entry, 'record.json'), JSON.stringify(record))
    utimesSync(entry, usedAt, usedAt)
  }
  mkdirSync(join(cacheDir, 'dependencies/namespace-a', sha256('damaged')))
  const { capabilities, changes } = create({}, false, cacheDir)
  await capabilities.detectDependencies()
  const key = ([domain, name]: readonly [string, string]) => dependencyCacheKey(domain, sha256(name))
  capabilities.recordDependencies(key(['namespace-b', 'middle']))
  deepEqual(
    capabilities.status.caches,
    (
      [
        ['namespace-a', 'old'],
        ['namespace-b', 'new'],
        ['namespace-a', 'new'],
        ['namespace-b', 'middle'],
      ] as const
    ).map(key),
  )
  equal(changes(), 1)
  const oneShot = create({}, true, cacheDir)
  await oneShot.capabilities.detectDependencies()
  oneShot.capabilities.recordDependencies(key(['namespace-a', 'new']))
  deepEqual([oneShot.capabilities.status.caches, oneShot.changes()], [[], 0])
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
