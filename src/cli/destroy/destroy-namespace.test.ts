import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack } from '../../api/index.ts'
import { destructionWaves } from './destroy-namespace.ts'

const wavesOf = (dependencies: Readonly<Record<string, readonly string[]>>): string[][] => {
  const stacks = Object.entries(dependencies).map(([name, needed]): Stack => {
    const metadata = { name, namespace: 'team', uid: name, resourceVersion: '1', creationTimestamp: '2026-06-01T10:00:00Z' }
    const spec = { engine: 'terraform', source: { inline: { files: {} } }, dependsOn: needed.map(other => ({ name: other })) } as const
    return { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Stack', metadata, spec: { ...spec, dependsOn: [...spec.dependsOn] } }
  })
  return destructionWaves(stacks).map(wave => wave.map(({ metadata }) => metadata.name))
}

for (const { name, dependencies, want } of [
  { name: 'Stacks without dependencies are destroyed together', dependencies: { b: [], a: [] }, want: [['a', 'b']] },
  { name: 'dependents are destroyed first', dependencies: { net: [], db: ['net'], app: ['db', 'net'] }, want: [['app'], ['db'], ['net']] },
  { name: 'the Stacks of a cycle are destroyed together', dependencies: { a: ['b'], b: ['a'] }, want: [['a', 'b']] },
  {
    name: 'what a cycle depends on is in its wave',
    dependencies: { a: ['b', 'net'], b: ['a'], net: [] },
    want: [['a', 'b', 'net']],
  },
  { name: 'a Stack that depends on itself blocks nothing', dependencies: { a: ['a'], b: [] }, want: [['a', 'b']] },
  { name: 'a dependency in no Stack of the namespace is ignored', dependencies: { a: ['elsewhere'] }, want: [['a']] },
])
  test(name, () => deepEqual(wavesOf(dependencies), want))
