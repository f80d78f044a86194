import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Client, ConnectionError, createClient } from '../src/kubernetes/client/index.ts'
import { describeResource, isReason } from '../src/kubernetes/object/index.ts'
import { type ApiServer, startServer } from '../src/kubernetes/server/index.ts'
import { eventually } from './support/eventually.ts'

type Data = { data?: Record<string, string> }
const configMaps = describeResource<Data>({ group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', scope: 'Namespaced' })
const at = { namespace: 'default' } as const

const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-local-'))
const mounts = [{ prefix: '/mounted', handler: () => {} }]
let server: ApiServer
let client: Client
const connect = async (token: string) =>
  await createClient({ cluster: { server: server.url, caCertificate: server.caCertificate, token }, local: server.connect() })

before(async () => {
  server = await startServer({ dataDir, listen: { port: 0 }, mounts })
  client = await connect(server.issueToken({ name: 'root', groups: ['system:masters'], ttlMs: 600_000 }))
})
after(async () => {
  await client.close()
  await server.close()
  rmSync(dataDir, { recursive: true, force: true })
})

test('returns the same responses as over the network', async () => {
  const maps = client.resource(configMaps)
  const created = await maps.create({ metadata: { name: 'a', ...at }, data: { text: 'žluťoučký 🐎 \u2028' } })
  assert.deepEqual((await maps.get('a', at)).data, { text: 'žluťoučký 🐎 \u2028' })
  await assert.rejects(maps.create({ metadata: { name: 'a', ...at } }), error => isReason(error, 'AlreadyExists'))
  await maps.patch('a', { data: { text: 'b' } }, { type: 'merge', ...at })
  const { resourceVersion } = created.metadata
  await assert.rejects(maps.patch('a', { data: {} }, { type: 'merge', ...at, resourceVersion }), error => isReason(error, 'Conflict'))
  const applied = await maps.apply({ metadata: { name: 'a', ...at }, data: { text: 'c' } }, { force: true })
  assert.equal(applied.data?.text, 'c')
  assert.match(await (await client.request({ method: 'GET', path: '/version' })).text(), /"major"/)
  await maps.delete('a', at)
  await assert.rejects(maps.get('a', at), error => isReason(error, 'NotFound'))
})

test('a request that beforeSend refuses does not reach the server', async () => {
  const beforeSend = () => {
    throw new Error('not the owner')
  }
  const body = { metadata: { name: 'refused' } }
  const path = '/api/v1/namespaces/default/configmaps'
  await assert.rejects(client.request({ method: 'POST', path, body, beforeSend }), /not the owner/)
  assert.equal(await client.resource(configMaps).getOrUndefined('refused', at), undefined)
})

test('returns a list that is larger than the backpressure limit', async () => {
  const maps = client.resource(configMaps)
  const text = 'x'.repeat(100_000)
  await Promise.all(Array.from({ length: 30 }, (_, i) => maps.create({ metadata: { name: `large-${i}`, ...at }, data: { text } })))
  const { items } = await maps.list(at)
  assert.equal(items.filter(({ data }) => data?.text === text).length, 30)
})

test('a slow reader delays a list of any length (backpressure)', async () => {
  const local = server.connect()
  let sentBytes = 0
  const counted: typeof local = {
    call: (request, sink) =>
      local.call(request, {
        head: (status, headers) => sink.head(status, headers),
        data(chunk) {
          sentBytes += chunk.length
          sink.data(chunk)
        },
        end: () => sink.end(),
        abort: () => sink.abort(),
      }),
  }
  const token = server.issueToken({ name: 'root', groups: ['system:masters'], ttlMs: 600_000 })
  const slow = await createClient({ cluster: { server: server.url, token }, local: counted })
  const { body } = await slow.stream({ method: 'GET', path: '/api/v1/namespaces/default/configmaps' })
  let before = -1
  await eventually(() => {
    const hasStopped = sentBytes > 0 && sentBytes === before
    before = sentBytes
    return hasStopped
  }, 'the server to pause')
  assert.ok(sentBytes < 2_000_000, `${sentBytes} bytes were sent to a reader that consumed none`)
  let readBytes = 0
  for await (const chunk of body) readBytes += chunk.length
  assert.ok(readBytes > 3_000_000)
  assert.equal(readBytes, sentBytes)
  await slow.close()
})

test('a reader that leaves the loop cancels its request immediately', async () => {
  const local = server.connect()
  let cancels = 0
  const counted: typeof local = {
    call(request, sink) {
      const { consumed, cancel } = local.call(request, sink)
      const counting = () => {
        cancels++
        cancel()
      }
      return { consumed, cancel: counting }
    },
  }
  const token = server.issueToken({ name: 'root', groups: ['system:masters'], ttlMs: 600_000 })
  const other = await createClient({ cluster: { server: server.url, token }, local: counted })
  const stop = new AbortController()
  const before = server.stats().watchers
  for await (const _ of other.resource(configMaps).watch({ ...at, signal: stop.signal })) break
  assert.deepEqual([cancels, server.stats().watchers], [1, before])
  stop.abort()
  await other.close()
  assert.equal(cancels, 1)
})

test('a watch delivers events and is removed from the server when its signal aborts', async () => {
  const maps = client.resource(configMaps)
  const events: string[] = []
  const stop = new AbortController()
  const before = server.stats().watchers
  const watching = (async () => {
    for await (const { type, object } of maps.watch({ ...at, labelSelector: 'watched', signal: stop.signal })) {
      events.push(`${type} ${object.metadata.name}`)
    }
  })()
  await eventually(() => server.stats().watchers === before + 1, 'the watch')
  await maps.create({ metadata: { name: 'seen', ...at, labels: { watched: 'yes' } } })
  await maps.delete('seen', at)
  await eventually(() => events.length === 2, 'both events')
  assert.deepEqual(events, ['ADDED seen', 'DELETED seen'])
  stop.abort()
  await watching
  await eventually(() => server.stats().watchers === before, 'the end of the watch')
})

test('authenticates by token and authorizes as over the network', async () => {
  const unauthenticated = await connect('not-a-token')
  await assert.rejects(unauthenticated.resource(configMaps).list(at), error => isReason(error, 'Unauthorized'))
  const eve = await connect(server.issueToken({ name: 'eve', groups: [], ttlMs: 600_000 }))
  await assert.rejects(eve.resource(configMaps).list(at), error => isReason(error, 'Forbidden'))
  await Promise.all([unauthenticated.close(), eve.close()])
})

test('rejects an object that is too large, a path of a mount, and requests whose signal aborts', async () => {
  const maps = client.resource(configMaps)
  const tooLarge = { metadata: { name: 'huge', ...at }, data: { text: 'x'.repeat(3_200_000) } }
  await assert.rejects(maps.create(tooLarge), error => isReason(error, 'RequestEntityTooLarge'))
  await assert.rejects(client.request({ method: 'GET', path: '/mounted/a' }), /\/mounted\/a is served on the TLS listener only/)
  await assert.rejects(client.request({ method: 'GET', path: '/version', signal: AbortSignal.abort(new Error('before')) }), /before/)
  const during = new AbortController()
  const pending = client.request({ method: 'GET', path: '/version', signal: during.signal })
  during.abort(new Error('during'))
  await assert.rejects(pending, /during/)
})

test('a stopped server ends watches and rejects requests; a closed client rejects requests with its own error', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-local-'))
  const other = await startServer({ dataDir: directory, listen: { port: 0 } })
  const token = other.issueToken({ name: 'root', groups: ['system:masters'], ttlMs: 600_000 })
  const late = await createClient({ cluster: { server: other.url, caCertificate: other.caCertificate, token }, local: other.connect() })
  const watching = (async () => {
    for await (const _ of late.resource(configMaps).watch({ ...at, labelSelector: 'none' })) assert.fail('unexpected event')
  })().catch((error: unknown) => error)
  await eventually(() => other.stats().watchers > 0, 'the watch')
  await other.close()
  const end = await watching
  assert.ok(end === undefined || end instanceof Error)
  await assert.rejects(late.request({ method: 'POST', path: '/api/v1/namespaces', body: {} }), ConnectionError)
  await late.close()
  await assert.rejects(late.request({ method: 'GET', path: '/version' }), /the client is closed/)
  rmSync(directory, { recursive: true, force: true })
})
