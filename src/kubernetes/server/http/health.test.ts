import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isHealthPath, readHealth } from './health.ts'

const healthy = { storageFailure: () => undefined, fullDisk: () => undefined, isStopping: () => false }
const broken = { ...healthy, storageFailure: () => 'the storage thread ended' }
const full = { ...healthy, fullDisk: () => 'the disk is full' }
const stopping = { ...healthy, isStopping: () => true }

for (const { what, path, query, checks = healthy, want } of [
  { what: 'a healthy server is live', path: '/livez', want: [200, 'ok'] },
  { what: 'one check by name', path: '/readyz/ping', want: [200, 'ok'] },
  { what: 'an unknown check', path: '/livez/etcd', want: [404, '404 page not found\n'] },
  { what: 'livez has no shutdown check', path: '/livez/shutdown', want: [404, '404 page not found\n'] },
  {
    what: 'verbose output',
    path: '/readyz',
    query: 'verbose',
    want: [200, '[+]ping ok\n[+]storage ok\n[+]disk ok\n[+]shutdown ok\nreadyz check passed\n'],
  },
  {
    what: 'failed storage',
    path: '/livez',
    checks: broken,
    want: [500, '[+]ping ok\n[-]storage failed: the storage thread ended\nlivez check failed\n'],
  },
  { what: 'a server with a full disk is live', path: '/livez', checks: full, want: [200, 'ok'] },
  {
    what: 'a server with a full disk is not ready',
    path: '/readyz',
    checks: full,
    want: [500, '[+]ping ok\n[+]storage ok\n[-]disk failed: the disk is full\n[+]shutdown ok\nreadyz check failed\n'],
  },
  { what: 'failed storage is excluded', path: '/healthz', query: 'exclude=storage', checks: broken, want: [200, 'ok'] },
  {
    what: 'an unknown exclusion is a warning',
    path: '/livez',
    query: 'exclude=etcd&verbose',
    want: [200, '[+]ping ok\n[+]storage ok\nwarn: some health checks cannot be excluded: no matches for "etcd"\nlivez check passed\n'],
  },
  { what: 'a server that shuts down is live', path: '/livez', checks: stopping, want: [200, 'ok'] },
  {
    what: 'a server that shuts down is not ready',
    path: '/readyz',
    checks: stopping,
    want: [500, '[+]ping ok\n[+]storage ok\n[+]disk ok\n[-]shutdown failed: process is shutting down\nreadyz check failed\n'],
  },
] as const) {
  test(what, () => {
    const response = readHealth(path, query === undefined ? undefined : new URLSearchParams(query), checks)
    assert.deepEqual([response?.code, response?.text], want)
  })
}

test('other paths are not health checks', () => {
  assert.equal(readHealth('/livez/a/b', undefined, healthy), undefined)
  assert.equal(readHealth('/version', undefined, healthy), undefined)
  assert.deepEqual(['/livez', '/livez/', '/livez/ping', '/'].map(isHealthPath), [true, false, false, false])
})
