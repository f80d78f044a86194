import { deepEqual, equal } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Run } from '../../../api/index.ts'
import { contentStoreOf } from './isolation.ts'
import { trustDomainOf } from './trust-domain.ts'

const run = (namespace: string, level: 'Process' | 'Sandbox' | undefined, tenantUid?: string) =>
  ({
    metadata: { namespace },
    spec: { stack: { ...(level && { isolation: { level } }) }, ...(tenantUid && { tenant: { name: 'acme', uid: tenantUid } }) },
  }) as Run

for (const { name, a, b, isShared } of [
  { name: 'two namespaces of one Tenant', a: run('x', 'Sandbox', '1'), b: run('y', 'Sandbox', '1'), isShared: true },
  { name: 'a Tenant and an earlier one of its name', a: run('x', 'Sandbox', '1'), b: run('x', 'Sandbox', '2'), isShared: false },
  { name: 'two namespaces without a Tenant', a: run('x', 'Sandbox'), b: run('y', 'Sandbox'), isShared: false },
  { name: 'a Tenant, and a namespace with its UID as the name', a: run('x', 'Sandbox', '1'), b: run('1', 'Sandbox'), isShared: false },
  { name: 'Runs with and without a sandbox', a: run('x', 'Sandbox', '1'), b: run('x', 'Process', '1'), isShared: false },
  { name: 'level Process and no level', a: run('x', 'Process'), b: run('x', undefined), isShared: true },
]) {
  test(`${name} ${isShared ? 'share' : 'do not share'} a trust domain`, () =>
    equal(trustDomainOf(a) === trustDomainOf(b), isShared, `${trustDomainOf(a)} and ${trustDomainOf(b)}`))

  test(`a record is ${isShared ? '' : 'not '}found across ${name}`, async t => {
    const cacheDir = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
    t.after(() => rmSync(cacheDir, { recursive: true }))
    await contentStoreOf(a, cacheDir).writeRecord('r', 'text')
    equal(await contentStoreOf(b, cacheDir).readRecord('r'), isShared ? 'text' : undefined)
  })
}

test('a sandboxed Run sees trees of its trust domain only, other Runs those of all Runs without a sandbox', () => {
  const visible = (of: Run) => contentStoreOf(of, '/cache').visible
  deepEqual(
    [run('x', 'Sandbox', 'u'), run('x', 'Sandbox'), run('x', 'Process', 'u'), run('y', undefined)].map(visible),
    ['tenant-u', 'namespace-x', 'shared', 'shared'].map(name => join('/cache/content', name)),
  )
})
