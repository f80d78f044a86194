import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Histogram, Registry } from 'prom-client'
import { startTestServer, type TestServer } from '../server.testing.ts'
import { RequestMetrics, ServerMetrics, type ServerStats } from './index.ts'
import { bucketSeconds } from './request-metrics.ts'

describe('/metrics', () => {
  let server: TestServer
  before(async () => {
    server = await startTestServer()
  })
  after(() => server.close())

  const scrape = async () => (await server.call<string>('/metrics')).body
  const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })

  test('requests are counted by resource, verb and status code', async () => {
    const base = '/api/v1/namespaces/default/configmaps'
    await server.call(base, { body: configMap('a') })
    await server.call(base, { body: configMap('a') })
    await server.call(base)
    await server.call('/api/v1/configmaps')
    await server.call(`${base}/a`)
    await server.call(`${base}/a?fieldManager=me`, { method: 'PATCH', body: configMap('a'), type: 'application/apply-patch+yaml' })
    await server.call(`${base}/b?dryRun=All`, { method: 'DELETE' })
    await server.call(`${base}/a?dryRun=All`, { method: 'DELETE' })
    await server.call('/api/v1/namespaces/default/inventions/x')
    const text = await scrape()
    const of = (code: number, verb: string, scope: string, dryRun = '', resource = 'configmaps', version = 'v1') =>
      `apiserver_request_total{code="${code}",dry_run="${dryRun}",component="apiserver",group="",resource="${resource}",scope="${scope}",subresource="",verb="${verb}",version="${version}"} 1\n`
    for (const line of [
      of(201, 'POST', 'resource'),
      of(409, 'POST', 'resource'),
      of(200, 'LIST', 'namespace'),
      of(200, 'LIST', 'cluster'),
      of(200, 'GET', 'resource'),
      of(200, 'APPLY', 'resource'),
      of(200, 'DELETE', 'resource', 'All'),
      of(404, 'DELETE', '', 'All', '', ''),
      of(404, 'GET', '', '', '', ''),
    ]) {
      assert.ok(text.includes(line), `${line} in\n${text}`)
    }
    assert.ok(!text.includes('inventions'), 'names that clients invent are not labels')
    assert.match(text, /^apiserver_request_duration_seconds_bucket\{[^}]*verb="GET"[^}]*le="\+Inf"\} 1$/m)
    assert.match(text, /^apiserver_storage_objects\{resource="configmaps"\} 1$/m)
    assert.match(text, /^apiserver_resource_objects\{group="rbac.authorization.k8s.io",resource="clusterroles"\} \d+$/m)
    assert.match(text, /^process_resident_memory_bytes \d+$/m)
    assert.match(text, /^oarlock_apiserver_writes_total \d+$/m)
    const names = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name)
    assert.equal(new Set(names).size, names.length, 'every name is unique')
  })

  test('a caller without rights creates no series for a resource', async () => {
    const token = server.server.issueToken({ name: 'unprivileged', groups: [], ttlMs: 60_000 })
    for (const path of [
      'pods',
      'pods/x',
      'pods/x/status',
      'pods?dryRun=All',
      'pods?watch=true',
      'pods?watch=maybe',
      'unknown',
      'pods/x/y',
    ]) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        assert.equal((await server.call(`/api/v1/namespaces/default/${path}`, { method, token })).code, 403)
      }
    }
    const text = await scrape()
    assert.equal(/^apiserver_(request|longrunning).*("pods"|"unknown").*$/m.exec(text)?.[0], undefined)
    const scopes = [...text.matchAll(/^apiserver_request_total\{code="403".*scope="([^"]*)"/gm)].map(([, scope]) => scope)
    assert.deepEqual([...new Set(scopes)], [''])
  })

  test('an open watch is a long-running request, and is counted when it ends', async () => {
    const open = () => /^apiserver_longrunning_requests\{[^}]*resource="secrets"[^}]*\} (\d+)$/m
    const watch = await server.watch(
      '/api/v1/secrets?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
    )
    await watch.next()
    const during = await scrape()
    assert.equal(open().exec(during)?.[1], '1', during)
    assert.ok(!/apiserver_request_total\{[^}]*"secrets"/.test(during))
    watch.stop()
    for (;;) {
      const text = await scrape()
      if (/apiserver_request_total\{code="200"[^}]*"secrets"[^}]*verb="WATCH"/.test(text)) {
        assert.equal(open().exec(text)?.[1], '0', text)
        break
      }
    }
  })

  test('requires credentials that may read it', async () => {
    assert.equal((await server.call('/metrics', { token: null })).code, 401)
    const token = server.server.issueToken({ name: 'prometheus', groups: [], ttlMs: 60_000 })
    assert.equal((await server.call('/metrics', { token })).code, 403)
    const monitoring = server.server.issueToken({ name: 'prometheus', groups: ['system:monitoring'], ttlMs: 60_000 })
    const { code, headers } = await server.call('/metrics', { token: monitoring })
    assert.equal(code, 200)
    assert.equal(headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  })
})

const stats: ServerStats = {
  objects: 3,
  objectBytes: 300,
  historyBytes: 600,
  watchers: 1,
  connections: 2,
  writes: 7,
  commits: 4,
  failedWrites: 0,
  queuedWrites: 5,
  lastCommitMs: 2,
  deferredWrites: 10,
  inFlight: 6,
  waitingRequests: 8,
  rejectedRequests: 9,
  rssBytes: 1_000,
  auditEvents: 7,
  lostAuditEvents: 2,
}

const render = (requests: RequestMetrics) =>
  new ServerMetrics({
    kubernetesVersion: 'v1.0.0',
    requests,
    resourceCounts: () => [{ group: 'g', resource: 'r', objects: 3 }],
    stats: () => stats,
  }).server()

test('short-lived kinds beyond the limit are counted without their resource', async () => {
  const metrics = new RequestMetrics({ maxSeries: 20 })
  const labels = { verb: 'GET', group: 'g', version: 'v1', subresource: '', scope: 'resource', isDryRun: false } as const
  for (let i = 0; i < 100; i++) metrics.observe({ ...labels, resource: `r${i}` }, 200, 0.001)
  const lines = (await render(metrics)).match(/^apiserver_request_total/gm)
  assert.equal(lines?.length, 21)
})

test('a request counts in its bucket and all above', async () => {
  const metrics = new RequestMetrics()
  const labels = { verb: 'GET', group: '', version: 'v1', resource: 'pods', subresource: '', scope: 'resource', isDryRun: false } as const
  for (const seconds of [0.005, 0.0051, 1, 100]) metrics.observe(labels, 200, seconds)
  const text = await render(metrics)
  const bucket = (le: string) => Number(new RegExp(`le="${le.replace('+', '\\+')}"[^}]*\\} (\\d+)`).exec(text)?.[1])
  assert.deepEqual(['0.005', '0.025', '0.8', '1', '60', '+Inf'].map(bucket), [1, 2, 2, 3, 3, 4])
})

test('the histogram of durations is rendered as prom-client renders its own for the same observations', async () => {
  const requests = new RequestMetrics()
  const registry = new Registry()
  const labelNames = ['dry_run', 'component', 'group', 'resource', 'scope', 'subresource', 'verb', 'version'] as const
  const histogram = new Histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'Duration of requests for resources in seconds; for watches, until their end.',
    labelNames,
    buckets: [...bucketSeconds],
    registers: [registry],
  })
  const labels = { group: 'apps', version: 'v1', resource: 'deployments', subresource: 'status', scope: 'resource' } as const
  for (const [verb, isDryRun, seconds] of [
    ['GET', false, 0],
    ['GET', false, 0.005],
    ['PATCH', true, 0.3],
    ['GET', false, 61],
    ['PATCH', true, 0.1],
    ['PATCH', true, 0.2],
  ] as const) {
    requests.observe({ ...labels, verb, isDryRun }, 200, seconds)
    histogram.observe({ ...labels, dry_run: isDryRun ? 'All' : '', component: 'apiserver', verb }, seconds)
  }
  const linesOf = (text: string) =>
    text
      .split('\n')
      .filter(line => line.includes('apiserver_request_duration_seconds'))
      // The order of labels has no meaning.
      .map(line => line.replace(/\{(.*)\}/, (_, pairs: string) => `{${pairs.split(',').sort().join(',')}}`))
  assert.deepEqual(linesOf(await render(requests)), linesOf(await registry.metrics()))
})

test('values are read at each scrape, and the peak of requests in flight restarts', async () => {
  const requests = new RequestMetrics()
  requests.requestStarted(true)
  requests.requestStarted(true)
  requests.requestFinished(true)
  const metrics = new ServerMetrics({ kubernetesVersion: 'v1.0.0', requests, resourceCounts: () => [], stats: () => stats })
  const peak = async () => Number(/inflight_requests\{request_kind="mutating"\} (\d+)/.exec(await metrics.server())?.[1])
  assert.equal(await peak(), 2)
  assert.equal(await peak(), 1)
  stats.writes = 8
  assert.match(await metrics.server(), /^oarlock_apiserver_writes_total 8$/m)
  assert.match((await metrics.all()).toString(), /^process_cpu_seconds_total [\d.]+$/m)
})
