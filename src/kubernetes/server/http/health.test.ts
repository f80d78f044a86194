import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isHealthPath, readHealth } from './health.ts'

const well = { storageFailure: () => undefined, isStopping: () => false }
const broken = { ...well, storageFailure: () => 'the storage thread ended' }
const stopping = { ...well, isStopping: () => true }

for (const { what, path, query, checks = well, says } of [
  { what: 'a server that lives', path: '/livez', says: [200, 'ok'] },
  { what: 'one check', path: '/readyz/ping', says: [200, 'ok'] },
  { what: 'a check that there is not', path: '/livez/etcd', says: [404, '404 page not found\n'] },
  { what: 'shutdown is nothing of livez', path: '/livez/shutdown', says: [404, '404 page not found\n'] },
  { what: 'in detail', path: '/readyz', query: 'verbose', says: [200, '[+]ping ok\n[+]storage ok\n[+]shutdown ok\nreadyz check passed\n'] },
  {
    what: 'broken storage',
    path: '/livez',
    checks: broken,
    says: [500, '[+]ping ok\n[-]storage failed: the storage thread ended\nlivez check failed\n'],
  },
  { what: 'broken storage left out', path: '/healthz', query: 'exclude=storage', checks: broken, says: [200, 'ok'] },
  {
    what: 'nothing left out',
    path: '/livez',
    query: 'exclude=etcd&verbose',
    says: [200, '[+]ping ok\n[+]storage ok\nwarn: some health checks cannot be excluded: no matches for "etcd"\nlivez check passed\n'],
  },
  { what: 'a server that stops lives', path: '/livez', checks: stopping, says: [200, 'ok'] },
  {
    what: 'and is not ready',
    path: '/readyz',
    checks: stopping,
    says: [500, '[+]ping ok\n[+]storage ok\n[-]shutdown failed: process is shutting down\nreadyz check failed\n'],
  },
] as const) {
  test(what, () => {
    const answer = readHealth(path, query === undefined ? undefined : new URLSearchParams(query), checks)
    assert.deepEqual([answer?.code, answer?.text], says)
  })
}

test('other paths are not health checks', () => {
  assert.equal(readHealth('/livez/a/b', undefined, well), undefined)
  assert.equal(readHealth('/version', undefined, well), undefined)
  assert.deepEqual(['/livez', '/livez/', '/livez/ping', '/'].map(isHealthPath), [true, false, false, false])
})
