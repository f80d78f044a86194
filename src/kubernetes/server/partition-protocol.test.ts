/** What a gateway relies on (`http/partition-protocol.ts`), over TLS with the certificate of a proxy. */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Agent, fetch } from 'undici'
import { nextRevision, readRevision } from '../util/index.ts'
import { issueClientCertificate, readCertificates } from './auth/index.ts'
import { makeDataDir, readLines, startTestServer, type TestServer } from './server.testing.ts'

const proxyDir = makeDataDir()
let server: TestServer
let gateway: Agent
const asAdmin = { 'x-remote-user': 'ada', 'x-remote-group': 'system:masters' }

before(async () => {
  const pki = join(proxyDir, 'pki')
  mkdirSync(pki)
  const { ca: caCertificate } = await readCertificates(pki, '127.0.0.1', Date.now())
  const { certificate, key } = await issueClientCertificate(pki, { name: 'gateway', groups: [], ttlMs: 3_600_000 }, Date.now())
  server = await startTestServer({ frontProxy: { caCertificate, allowedNames: ['gateway'] }, partition: 5, mapEpoch: () => 77 })
  gateway = new Agent({ connect: { ca: server.server.caCertificate, cert: certificate, key }, bodyTimeout: 0 })
})
after(async () => {
  await gateway?.destroy()
  await server?.close()
  rmSync(proxyDir, { recursive: true, force: true })
})

const send = (path: string, headers: Record<string, string> = {}, more: { method?: string; body?: string } = {}) =>
  fetch(server.server.url + path, { dispatcher: gateway, headers: { ...asAdmin, 'content-type': 'application/json', ...headers }, ...more })
const configMaps = '/api/v1/namespaces/default/configmaps'
const create = (name: string, headers: Record<string, string> = {}) =>
  send(configMaps, headers, { method: 'POST', body: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }) })
const versionOf = async (response: Awaited<ReturnType<typeof send>>) =>
  Number(((await response.json()) as { metadata: { resourceVersion: string } }).metadata.resourceVersion)
const ahead = (ms: number) => nextRevision(0, Date.now() + ms, 60)

test('a write gets a higher version than the gateway has seen, and a list shows at least that', async () => {
  const seen = ahead(5_000)
  const version = await versionOf(await create('after', { 'x-oarlock-seen-version': String(seen) }))
  assert.ok(version > seen)
  const created = await create('reached')
  assert.ok(Number(created.headers.get('x-oarlock-version')) >= (await versionOf(created)))
  assert.equal(readRevision(version).partition, 5)
  const later = ahead(9_000)
  assert.equal(await versionOf(await send(configMaps, { 'x-oarlock-seen-version': String(later) })), later)
  const exact = `${configMaps}?resourceVersion=${later}&resourceVersionMatch=Exact`
  assert.equal(await versionOf(await send(exact)), later)
})

test('a version that is no number is rejected, one that is too far ahead raises nothing, and of others the header is ignored', async () => {
  const rejections = [
    [configMaps, 'soon', /x-oarlock-seen-version must be a resource version, got "soon"/],
    [`/partition/progress?version=${ahead(90_000)}`, '1', /s ahead of the clock of this server, at most 60 s are accepted/],
  ] as const
  for (const [path, text, message] of rejections) {
    const response = await send(path, { 'x-oarlock-seen-version': text })
    assert.equal(response.status, 400)
    assert.match(((await response.json()) as { message: string }).message, message)
  }
  const response = await send(configMaps, { 'x-oarlock-seen-version': String(ahead(90_000)) })
  assert.equal(response.status, 200)
  assert.ok(Number(response.headers.get('x-oarlock-version')) < ahead(60_000))
  assert.equal((await server.call(configMaps, { headers: { 'x-oarlock-seen-version': 'soon' } })).code, 200)
  assert.equal((await server.call('/partition/progress')).code, 404)
})

test('the lines of a watch have their versions in front, and a bookmark comes when it is asked for, after every event', async () => {
  const from = await versionOf(await send(configMaps))
  const response = await send(`${configMaps}?watch=true&resourceVersion=${from}`, { 'x-oarlock-watch': 'w1' })
  assert.ok(response.body)
  const lines = readLines(response.body)
  const next = async () => (await lines.next()).value as string
  const created = await versionOf(await create('watched'))
  assert.match(await next(), new RegExp(`^${created} \\{"type":"ADDED".*"watched"`))
  const progress = async (version: number) => {
    const answer = await send(`/partition/progress?version=${version}&watch=w1&watch=unknown`)
    return Number(((await answer.json()) as { resourceVersion: string }).resourceVersion)
  }
  const version = ahead(20_000)
  assert.equal(await progress(version), version)
  assert.match(await next(), new RegExp(`^B${version} \\{"type":"BOOKMARK"`))
  // Under load: no event up to the version comes after its bookmark.
  const writes = Promise.all(Array.from({ length: 50 }, (_, number) => create(`load-${number}`)))
  let last = version
  let events = 0
  for (let round = 1; events < 50 || round <= 10; round++) {
    if (round <= 10) void progress(nextRevision(0, readRevision(version).atMs + round * 3, 60))
    const line = await next()
    const isBookmark = line.startsWith('B')
    const at = Number(line.slice(isBookmark ? 1 : 0).split(' ')[0])
    assert.ok(isBookmark ? at >= last : at > last, `${line.slice(0, 40)} after ${last}`)
    last = at
    if (!isBookmark) events++
  }
  await writes
  await lines.return?.(undefined)
})

test('a watch from a version that the server has not reached ends with an error in a marked line, unless its clock is raised', async () => {
  const path = `${configMaps}?watch=true&resourceVersion=${ahead(30_000)}&timeoutSeconds=1`
  assert.match(await (await send(path, { 'x-oarlock-watch': 'w2' })).text(), /^E \{"type":"ERROR","object":\{.*"code":410/)
  const raised = { 'x-oarlock-watch': 'w3', 'x-oarlock-seen-version': String(ahead(30_000)) }
  assert.equal(await (await send(path, raised)).text(), '')
})

test('a namespace that is not on this server is misdirected, and nothing is done', async () => {
  const path = '/api/v1/namespaces/elsewhere/configmaps'
  const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } })
  for (const response of [await send(path), await send(path, {}, { method: 'POST', body })]) {
    assert.equal(response.status, 421)
    const { message, details } = (await response.json()) as { message: string; details: object }
    assert.match(message, /this partition does not have namespace "elsewhere"/)
    assert.deepEqual(details, { causes: [{ field: 'mapEpoch', message: '77' }] })
  }
  assert.equal((await server.call('/api/v1/namespaces/elsewhere/configmaps')).code, 200)
})

test('an object is not created above the version that a gateway allows, but updated, and of others the header is ignored', async () => {
  const apply = (name: string, headers: Record<string, string>) =>
    send(
      `${configMaps}/${name}?fieldManager=gateway`,
      { ...headers, 'content-type': 'application/apply-patch+yaml' },
      { method: 'PATCH', body: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: headers }) },
    )
  const passed = { 'x-oarlock-not-after': String(nextRevision(0, Date.now() - 1_000, 5)) }
  const late = await create('late', passed)
  assert.equal(late.status, 412)
  assert.match(((await late.json()) as { message: string }).message, /configmaps "default\/late" is not created, because the time/)
  assert.equal((await apply('late', passed)).status, 412)
  assert.equal((await send(`${configMaps}/late`)).status, 404)
  assert.equal((await create('late', { 'x-oarlock-not-after': String(ahead(60_000)) })).status, 201)
  assert.equal((await apply('late', { 'x-oarlock-not-after': '0' })).status, 200)
  assert.equal((await create('bad', { 'x-oarlock-not-after': 'soon' })).status, 400)
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'direct' } }
  assert.equal((await server.call(configMaps, { body, headers: passed })).code, 201)
})

test('a watch that ends when current sends what was there, a bookmark of its version, and its end', async () => {
  const from = await versionOf(await send(configMaps))
  const created = await versionOf(await create('missed'))
  const headers = { 'x-oarlock-watch': 'w4', 'x-oarlock-watch-end': 'current' }
  const replay = (await (await send(`${configMaps}?watch=true&resourceVersion=${from}`, headers)).text()).trim().split('\n')
  assert.equal(replay.length, 2)
  assert.ok(replay[0]?.startsWith(`${created} {"type":"ADDED"`))
  assert.ok(Number(/^B(\d+) \{"type":"BOOKMARK"/.exec(replay[1] ?? '')?.[1]) >= created)
  const initial = `${configMaps}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name%3Dmissed`
  const lines = (await (await send(initial, headers)).text()).trim().split('\n')
  assert.equal(lines.length, 2)
  assert.match(lines[0] ?? '', /^0 \{"type":"ADDED"/)
  assert.match(lines[1] ?? '', /^B\d+ \{"type":"BOOKMARK".*"k8s.io\/initial-events-end":"true"/)
  assert.equal(
    (await send(`${configMaps}?watch=true&resourceVersion=1`, { ...headers, 'x-remote-group': '', 'x-remote-user': 'eve' })).status,
    403,
  )
})

test('an event begins with what selectors select by, and an object that moves has an event for those that it leaves', async () => {
  const secrets = '/api/v1/namespaces/default/secrets'
  const from = await versionOf(await send(secrets))
  const headers = { 'x-oarlock-watch': 'w5', 'x-oarlock-watch-selected': 'true', 'x-oarlock-watch-end': 'current' }
  const metadata = { name: 'moves', labels: { app: 'a' } }
  const post = { method: 'POST', body: JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, type: 'example.com/ü' }) }
  const added = await versionOf(await send(secrets, {}, post))
  const patch = async (labels: object) =>
    await versionOf(
      await send(
        `${secrets}/moves`,
        { 'content-type': 'application/merge-patch+json' },
        { method: 'PATCH', body: JSON.stringify({ metadata: labels }) },
      ),
    )
  const same = await patch({ annotations: { note: 'x' } })
  const moved = await patch({ labels: { app: 'b' } })
  await send(`${secrets}/moves`, {}, { method: 'DELETE' })
  const text = await (await send(`${secrets}?watch=true&resourceVersion=${from}`, headers)).text()
  const lines = text.trim().split('\n')
  const read = (line = '') => {
    const [, revision, length = '0'] = /^S(\d+) (\d+) /.exec(line) ?? []
    const start = line.indexOf(' ', line.indexOf(' ') + 1) + 1
    const { namespace, name, after, before } = JSON.parse(line.slice(start, start + Number(length))) as Record<string, unknown>
    const { type } = JSON.parse(line.slice(start + Number(length))) as { type: string }
    return { revision: Number(revision), key: `${namespace}/${name}`, after, before, type }
  }
  const values = (app: string) => ({ labels: { app }, fields: { type: 'example.com/ü' } })
  const key = 'default/moves'
  assert.deepEqual(read(lines[0]), { revision: added, key, after: values('a'), before: undefined, type: 'ADDED' })
  assert.deepEqual(read(lines[1]), { revision: same, key, after: values('a'), before: true, type: 'MODIFIED' })
  // In its last version inside the selection that it leaves, at the revision of the change.
  assert.ok(lines[2]?.startsWith(`L${moved} {"type":"DELETED"`))
  assert.ok(lines[2]?.includes('"app":"a"') && lines[2].includes(`"resourceVersion":"${moved}"`))
  assert.deepEqual(read(lines[3]), { revision: moved, key, after: values('b'), before: values('a'), type: 'MODIFIED' })
  assert.deepEqual({ ...read(lines[4]), revision: 0 }, { revision: 0, key, after: undefined, before: values('b'), type: 'DELETED' })
  assert.match(lines[5] ?? '', /^B\d+ /)
})

test('a gateway asks for the rights of many users in one request, and gets what each of their requests would get', async () => {
  const url = '/api/v1/configmaps?watch=true&fieldSelector=metadata.name%3Dx'
  const user = (name: string, groups: string[]) => ({ name, groups })
  const checks = [
    { user: user('ada', ['system:masters']), url },
    { user: user('eve', []), url },
    { user: user('system:node:n1', ['system:nodes']), url: '/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1' },
    { user: user('system:node:n1', ['system:nodes']), url: '/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn2' },
  ]
  const answer = await send('/partition/rights', {}, { method: 'POST', body: JSON.stringify({ checks }) })
  assert.deepEqual(await answer.json(), { allowed: [true, false, true, false] })
  const invalid = await send('/partition/rights', {}, { method: 'POST', body: JSON.stringify({ checks: [{ user: { name: 'x' }, url }] }) })
  assert.equal(invalid.status, 400)
  assert.equal((await server.call('/partition/rights', { body: { checks } })).code, 404)
})

test('a watch from a server that does not have the change that the gateway has seen gets 410, although its clock has been raised', async () => {
  const known = await versionOf(await create('known'))
  const path = `${configMaps}?watch=true&resourceVersion=${ahead(40_000)}`
  const watch = (version: number) =>
    send(path, {
      ...{ 'x-oarlock-watch': 'w6', 'x-oarlock-watch-end': 'current', 'x-oarlock-watch-known': String(version) },
      'x-oarlock-seen-version': String(ahead(45_000)),
    })
  const response = await watch(known)
  assert.equal(response.headers.get('x-oarlock-watch-known'), String(known))
  assert.match(await response.text(), /^B\d+ /)
  assert.match(await (await watch(known + 1)).text(), /^E \{"type":"ERROR".*"code":410/)
})
