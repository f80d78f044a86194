import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTenant } from '../objects.testing.ts'
import { selectorError, TenantIndex } from './tenants.ts'

const namespace = (name: string, labels: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-06-01T10:00:00Z', labels },
})

test('a namespace that no Tenant claims is its own tenant, with weight 1 and no limit', () => {
  const index = new TenantIndex([testTenant('shop', { namespaces: ['web'] })], [namespace('web'), namespace('alone')])
  assert.equal(index.tenantOf('alone'), 'alone')
  assert.deepEqual(index.settingsOf('alone'), { weight: 1, maxRunning: Infinity })
  assert.equal(index.tenantOf('web'), 'shop')
  assert.deepEqual(index.namespacesOf('shop'), ['web'])
})

test('a Tenant without namespaces applies to the namespace of its own name', () => {
  const index = new TenantIndex([testTenant('web', { weight: 5, limits: { maxRunning: 2 } })], [namespace('web')])
  assert.deepEqual(index.settingsOf(index.tenantOf('web')), { weight: 5, maxRunning: 2 })
  assert.deepEqual(index.namespacesOf('web'), ['web'])
})

test('a name takes precedence over a selector, and the older Tenant over the younger', () => {
  const named = testTenant('young', { namespaces: ['a', 'b'] }, 9_000)
  const selecting = testTenant('old', { namespaceSelector: { matchLabels: { team: 'x' } } }, 0)
  const late = testTenant('late', { namespaces: ['b'], namespaceSelector: {} }, 10_000)
  const labels = { team: 'x' }
  const index = new TenantIndex([late, named, selecting], [namespace('a', labels), namespace('b'), namespace('c', labels), namespace('d')])
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map(name => index.tenantOf(name)),
    ['young', 'young', 'old', 'late'],
  )
  assert.deepEqual(index.conflictsOf('late'), [
    { namespace: 'b', owner: 'young' },
    { namespace: 'c', owner: 'old' },
  ])
})

test('an invalid selector matches nothing and is reported', () => {
  const spec = { namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'In' as const, values: [] }] } }
  assert.match(selectorError(spec) ?? '', /spec\.namespaceSelector/)
  assert.equal(new TenantIndex([testTenant('t', spec)], [namespace('a')]).tenantOf('a'), 'a')
})
