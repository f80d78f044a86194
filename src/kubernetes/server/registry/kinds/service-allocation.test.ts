import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '../../../object/index.ts'
import { allocationOf, isInRange, kubernetesServiceIp, portKey } from './service-allocation.ts'

function service(name: string, spec: object): KubeObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'a' } as KubeObject['metadata'], spec }
}

function storedOf(...services: KubeObject[]) {
  const byKey = new Map(services.map(object => [`${object.metadata.namespace}/${object.metadata.name}`, object]))
  return { byKey, get: (_: string, key: string) => byKey.get(key), all: () => byKey.values(), inNamespace: () => byKey.values() }
}

test('the addresses and ports of a stored Service stay allocated until it is deleted', () => {
  const existing = service('old', { clusterIPs: ['10.96.0.9'], ports: [{ nodePort: 30_500 }] })
  const stored = storedOf(existing)
  const allocation = allocationOf(stored)
  const other = service('new', {})
  assert.equal(allocation.claim('10.96.0.9', other), false)
  assert.equal(allocation.claim(portKey(30_500), other), false)
  assert.equal(allocation.claim('10.96.0.9', existing), true)
  stored.byKey.clear()
  assert.equal(allocation.claim('10.96.0.9', other), true)
})

test('an allocation whose Service was never stored is released', () => {
  const allocation = allocationOf(storedOf())
  assert.equal(allocation.claim('10.96.1.1', service('failed', {})), true)
  assert.equal(allocation.claim('10.96.1.1', service('next', {})), true)
})

test('the first address is reserved for default/kubernetes, except for a Service that already has it', () => {
  const kubernetes = { ...service('kubernetes', {}), metadata: { name: 'kubernetes', namespace: 'default' } as KubeObject['metadata'] }
  const existing = service('old', { clusterIPs: [kubernetesServiceIp] })
  const stored = storedOf(existing)
  const allocation = allocationOf(stored)
  assert.equal(allocation.claim(kubernetesServiceIp, existing), true)
  assert.equal(allocation.claim(kubernetesServiceIp, service('new', {})), false)
  assert.equal(allocation.claim(kubernetesServiceIp, kubernetes), false)
  stored.byKey.clear()
  assert.equal(allocation.claim(kubernetesServiceIp, existing), false)
  assert.equal(allocation.claim(kubernetesServiceIp, service('new', {})), false)
  assert.equal(allocation.claim(kubernetesServiceIp, kubernetes), true)
})

test('allocates each port once until none is left', () => {
  const stored = storedOf()
  const allocation = allocationOf(stored)
  const ports = new Set<number>()
  for (let index = 0; ; index++) {
    const owner = service(`s${index}`, {})
    const port = allocation.port(owner)
    if (port === undefined) break
    assert.ok(!ports.has(port))
    ports.add(port)
    stored.byKey.set(`a/s${index}`, service(`s${index}`, { ports: [{ nodePort: port }] }))
  }
  assert.equal(ports.size, 32_767 - 30_086 + 1)
})

test('the range excludes its first and last address', () => {
  const allocation = allocationOf(storedOf())
  for (let index = 0; index < 100; index++) assert.ok(isInRange(allocation.address(service('a', {}))!))
  assert.deepEqual(['10.96.0.0', '10.96.0.1', '10.96.255.254', '10.96.255.255', '10.97.0.1'].map(isInRange), [
    false,
    true,
    true,
    false,
    false,
  ])
})
