import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRoute } from './route.ts'

const resource = (group: string, version: string, namespace: string, plural: string, name = '', subresource = '') =>
  ({ type: 'resource', group, version, namespace, plural, name, subresource }) as const

for (const [path, want] of [
  ['/api/v1/configmaps', resource('', 'v1', '', 'configmaps')],
  ['/api/v1/namespaces', resource('', 'v1', '', 'namespaces')],
  ['/api/v1/namespaces/a', resource('', 'v1', '', 'namespaces', 'a')],
  ['/api/v1/namespaces/a/status', resource('', 'v1', '', 'namespaces', 'a', 'status')],
  ['/api/v1/namespaces/a/finalize', resource('', 'v1', '', 'namespaces', 'a', 'finalize')],
  ['/api/v1/namespaces/a/secrets', resource('', 'v1', 'a', 'secrets')],
  ['/api/v1/namespaces/a/secrets/', resource('', 'v1', 'a', 'secrets')],
  ['/apis/oarlock.dev/v1alpha1/namespaces/a/stacks/s/status', resource('oarlock.dev', 'v1alpha1', 'a', 'stacks', 's', 'status')],
  ['/apis/oarlock.dev/v1alpha1/workers/w%20x', resource('oarlock.dev', 'v1alpha1', '', 'workers', 'w x')],
  [
    '/apis/oarlock.dev/v1alpha1/namespaces/a/stacks/s/status/more',
    { type: 'path', path: '/apis/oarlock.dev/v1alpha1/namespaces/a/stacks/s/status/more' },
  ],
  ['/api/v1//secrets', { type: 'path', path: '/api/v1//secrets' }],
  ['/api/v1', { type: 'path', path: '/api/v1' }],
  ['/apis/oarlock.dev/v1alpha1', { type: 'path', path: '/apis/oarlock.dev/v1alpha1' }],
  ['/', { type: 'path', path: '/' }],
  ['*', { type: 'path', path: '*' }],
] as const) {
  test(path, () => assert.deepEqual(readRoute(path), want))
}
