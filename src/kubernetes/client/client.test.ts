import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { type RequestHandler, respondJson, respondStatus, startScriptedServer } from '../../../test/support/scripted-server.ts'
import { StatusError } from '../object/index.ts'
import { ConnectionError, configMapResource, createClient, namespaceResource } from './index.ts'

const noWait = { nowMs: () => 0, sleep: async () => undefined }
const object = (name: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default', uid: 'u', resourceVersion: '7' },
})

async function withServer(script: RequestHandler, run: (context: Awaited<ReturnType<typeof open>>) => Promise<void>) {
  const context = await open(script)
  try {
    await run(context)
  } finally {
    await context.client.close()
    await context.server.close()
  }
}

async function open(script: RequestHandler) {
  const server = await startScriptedServer(script)
  const client = await createClient({ cluster: { server: server.url, token: 'top-secret' }, clock: noWait, random: () => 0 })
  return { server, client, configMaps: client.resource(configMapResource) }
}

test('sends the path, query, body and content type that Kubernetes expects for each method', async () => {
  await withServer(
    (_request, response) => respondJson(response, object('a')),
    async ({ client, configMaps, server }) => {
      await configMaps.get('a')
      await configMaps.create({ metadata: { name: 'a' }, data: { x: '1' } })
      await configMaps.update({ metadata: { name: 'a', namespace: 'blue', resourceVersion: '3' } }, { dryRun: true })
      await configMaps.updateStatus({ metadata: { name: 'a' } })
      await configMaps.patch('a', [{ op: 'remove', path: '/data' }], { type: 'json' })
      await configMaps.patchStatus('a', { status: { ready: true } }, { resourceVersion: '9' })
      await configMaps.apply({ metadata: { name: 'a', managedFields: [] } }, { force: true, fieldManager: 'me' })
      await configMaps.delete('a', { namespace: 'blue', preconditions: { uid: 'u' }, propagationPolicy: 'Foreground' })
      await client.resource(namespaceResource).get('blue')
      const sent = server.requests.map(({ method, path, query, headers, body }) =>
        [method, path + (query.size ? `?${query}` : ''), headers['content-type'] ?? '', body].join(' ').trim(),
      )
      const base = '/api/v1/namespaces/default/configmaps'
      deepEqual(sent, [
        `GET ${base}/a`,
        `POST ${base}?fieldManager=oarlock application/json {"metadata":{"name":"a","namespace":"default"},"data":{"x":"1"},"apiVersion":"v1","kind":"ConfigMap"}`,
        'PUT /api/v1/namespaces/blue/configmaps/a?fieldManager=oarlock&dryRun=All application/json {"metadata":{"name":"a","namespace":"blue","resourceVersion":"3"},"apiVersion":"v1","kind":"ConfigMap"}',
        `PUT ${base}/a/status?fieldManager=oarlock application/json {"metadata":{"name":"a","namespace":"default"},"apiVersion":"v1","kind":"ConfigMap"}`,
        `PATCH ${base}/a?fieldManager=oarlock application/json-patch+json [{"op":"remove","path":"/data"}]`,
        `PATCH ${base}/a/status?fieldManager=oarlock application/merge-patch+json {"status":{"ready":true},"metadata":{"resourceVersion":"9"}}`,
        `PATCH ${base}/a?fieldManager=me&force=true application/apply-patch+yaml {"metadata":{"name":"a","namespace":"default"},"apiVersion":"v1","kind":"ConfigMap"}`,
        'DELETE /api/v1/namespaces/blue/configmaps/a application/json {"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground","preconditions":{"uid":"u"}}',
        'GET /api/v1/namespaces/blue',
      ])
      ok(server.requests.every(({ headers }) => headers.authorization === 'Bearer top-secret'))
    },
  )
})

test('a list without a namespace covers all namespaces and sets the kind of its items; listAll reads every page', async () => {
  await withServer(
    (request, response) => {
      const page = Number(request.query.get('continue') ?? '0')
      const items = [{ metadata: { name: `n${page}`, resourceVersion: '1' } }]
      respondJson(response, {
        kind: 'ConfigMapList',
        apiVersion: 'v1',
        metadata: { resourceVersion: `${100 + page}`, continue: page < 2 ? `${page + 1}` : '' },
        items,
      })
    },
    async ({ configMaps, server }) => {
      const { items, metadata } = await configMaps.listAll({ labelSelector: 'a=b' })
      deepEqual(
        items.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
        ['ConfigMap n0', 'ConfigMap n1', 'ConfigMap n2'],
      )
      deepEqual(metadata, { resourceVersion: '100' })
      deepEqual(
        server.requests.map(({ path, query }) => `${path}?${query}`),
        ['', '&continue=1', '&continue=2'].map(rest => `/api/v1/configmaps?labelSelector=a%3Db&limit=500${rest}`),
      )
    },
  )
})

test('listAll restarts without pages when a continue token has expired', async () => {
  await withServer(
    (request, response) => {
      if (request.query.has('continue')) return respondStatus(response, 410, 'Expired')
      respondJson(response, {
        metadata: { resourceVersion: '1', continue: request.query.has('limit') ? 'x' : '' },
        items: [{ metadata: { name: 'a' } }],
      })
    },
    async ({ configMaps, server }) => {
      equal((await configMaps.listAll()).items.length, 1)
      equal(server.requests.length, 3)
    },
  )
})

test('a Status response becomes a StatusError with its reason; getOrUndefined ignores NotFound only', async () => {
  await withServer(
    (request, response) =>
      respondStatus(response, request.path.endsWith('absent') ? 404 : 403, request.path.endsWith('absent') ? 'NotFound' : 'Forbidden'),
    async ({ configMaps }) => {
      await rejects(configMaps.get('absent'), { name: 'StatusError', reason: 'NotFound', code: 404, message: 'scripted NotFound' })
      equal(await configMaps.getOrUndefined('absent'), undefined)
      await rejects(configMaps.getOrUndefined('locked'), { reason: 'Forbidden' })
    },
  )
})

for (const { name, status, wantCode } of [
  { name: 'an unavailable gateway', status: 502, wantCode: 502 },
  { name: 'a login page with status 200', status: 200, wantCode: 500 },
  { name: 'a redirect to a login page', status: 302, wantCode: 500 },
]) {
  test(`HTML from ${name} is reported with an excerpt and what to check`, async () => {
    await withServer(
      (_request, response) => {
        response
          .writeHead(status, { 'content-type': 'text/html', location: '/login?next=x' })
          .end(`<html>\n<h1>Please log in</h1>${'x'.repeat(5_000)}`)
      },
      async ({ configMaps }) => {
        const error = await configMaps.get('a').then(
          () => undefined,
          error => error,
        )
        ok(error instanceof StatusError)
        equal(error.code, wantCode)
        match(
          error.message,
          new RegExp(`GET http://127.0.0.1:\\d+/api/v1/.* returned ${status}.* with text/html .*Please log in.*is this the address`),
        )
        ok(error.message.length < 500)
      },
    )
  })
}

test('429 and 503 with Retry-After are retried up to a limit, then fail with the error of the server', async () => {
  const waits: number[] = []
  const server = await startScriptedServer((request, response) => {
    const isWrite = request.method === 'POST'
    if (server.requests.length <= 2) return respondStatus(response, isWrite ? 429 : 503, 'TooManyRequests', { 'retry-after': '3' })
    respondJson(response, object('a'))
  })
  const clock = { nowMs: () => 0, sleep: async (ms: number) => void waits.push(ms) }
  const client = await createClient({ cluster: { server: server.url }, clock, random: () => 0.5 })
  try {
    equal((await client.resource(configMapResource).create({ metadata: { name: 'a' } })).metadata.name, 'a')
    deepEqual(waits, [3_150, 3_150])
    server.setHandler((_request, response) => respondStatus(response, 429, 'TooManyRequests', { 'retry-after': '1' }))
    await rejects(client.resource(configMapResource).get('a'), { reason: 'TooManyRequests', details: { retryAfterSeconds: 1 } })
    equal(server.requests.length, 3 + 6)
    server.setHandler((_request, response) => respondStatus(response, 503, 'ServiceUnavailable'))
    await rejects(client.resource(configMapResource).get('a'), { reason: 'ServiceUnavailable' })
    equal(server.requests.length, 3 + 6 + 1, 'a 503 without Retry-After is not retried')
  } finally {
    await client.close()
    await server.close()
  }
})

test('a broken connection is retried for a get, but not for a create', async () => {
  await withServer(
    (_request, response) => void response.socket?.destroy(),
    async ({ configMaps, server }) => {
      const error = await configMaps.get('a').then(
        () => undefined,
        error => error,
      )
      ok(error instanceof ConnectionError)
      match(error.message, /GET \/api\/v1\/namespaces\/default\/configmaps\/a on http:\/\/127\.0\.0\.1:\d+: connection /)
      equal(server.requests.length, 6)
      await rejects(configMaps.create({ metadata: { name: 'a' } }), ConnectionError)
      equal(server.requests.length, 7)
    },
  )
})

test('a refused connection is reported with the server and what to check, without the token', async () => {
  const server = await startScriptedServer(() => undefined)
  await server.close()
  const client = await createClient({ cluster: { server: server.url, token: 'top-secret' } })
  await rejects(client.resource(configMapResource).get('a'), (error: ConnectionError) => {
    match(error.message, /connection refused \(ECONNREFUSED\): is the server running/)
    ok(error.message.includes(server.url) && !JSON.stringify(error).includes('top-secret') && error.cause instanceof Error)
    return true
  })
  await client.close()
})

test('a request to a silent server fails after timeoutMs, and an aborted request immediately', async () => {
  await withServer(
    () => undefined,
    async ({ client, configMaps }) => {
      await rejects(client.request({ method: 'GET', path: '/slow', timeoutMs: 60 }), {
        name: 'ConnectionError',
        code: 'ERR_RESPONSE_TIMEOUT',
      })
      const abort = new AbortController()
      const waiting = configMaps.get('a', { signal: abort.signal })
      abort.abort(new Error('enough'))
      await rejects(waiting, { message: 'enough' })
    },
  )
})

test('discovery is requested once per version, and again for a kind that was missing', async () => {
  const kinds = ['Stack']
  await withServer(
    (request, response) => {
      if (request.path !== '/apis/oarlock.dev/v1alpha1') return respondStatus(response, 404, 'NotFound')
      const resources = kinds.flatMap(kind => [
        { name: `${kind.toLowerCase()}s`, kind, namespaced: true },
        { name: `${kind.toLowerCase()}s/status`, kind, namespaced: true },
      ])
      respondJson(response, { kind: 'APIResourceList', resources })
    },
    async ({ client, server }) => {
      const [stack] = await Promise.all([1, 2, 3].map(() => client.discover('oarlock.dev/v1alpha1', 'Stack')))
      deepEqual([stack?.plural, stack?.scope, server.requests.length], ['stacks', 'Namespaced', 1])
      await rejects(client.discover('oarlock.dev/v1alpha1', 'Run'), { reason: 'NotFound', message: /is its CRD installed/ })
      kinds.push('Run')
      equal((await client.discover('oarlock.dev/v1alpha1', 'Run')).plural, 'runs')
      await rejects(client.discover('nowhere.dev/v1', 'X'), { reason: 'NotFound' })
    },
  )
})

test('rejects names that would change the path before anything is sent', async () => {
  await withServer(
    (_request, response) => respondJson(response, object('a')),
    async ({ configMaps, server }) => {
      for (const name of ['', '..', 'a/b', '%2e']) await rejects(configMaps.get(name), TypeError)
      equal(server.requests.length, 0)
    },
  )
})

for (const isShort of [true, false])
  test(`beforeSend is called for each attempt${isShort ? ' on a shared connection' : ''}: a retry that it refuses is not sent`, async () => {
    await withServer(
      (_request, response) => respondStatus(response, 429, 'TooManyRequests', { 'retry-after': '0' }),
      async ({ client, server }) => {
        let calls = 0
        const beforeSend = () => {
          if (++calls > 2) throw new Error('not the owner')
        }
        await rejects(client.request({ method: 'PATCH', path: '/a', body: {}, isShort, beforeSend }), /not the owner/)
        deepEqual([calls, server.requests.length], [3, 2])
        // On a connection that is open already, and on the next one.
        for (const close of [false, true]) {
          if (close) server.closeConnections()
          await rejects(client.request({ method: 'PATCH', path: '/a', body: {}, isShort, beforeSend }), /not the owner/)
        }
        deepEqual([calls, server.requests.length], [5, 2])
        server.setHandler((_, response) => respondJson(response, object('a')))
        equal((await client.request({ method: 'PATCH', path: '/a', body: {}, isShort, beforeSend: () => undefined })).status, 200)
      },
    )
  })
