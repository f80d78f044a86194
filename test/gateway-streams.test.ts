/** Logs of Pods and streams into them through the gateway: the Pod in the partition of its Tenant, its Node in another one. */
import { equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { type Client, createClient, namespaceResource } from '../src/kubernetes/client/index.ts'
import { issueKubeletCertificates, readServingCertificates } from '../src/kubernetes/server/index.ts'
import { eventually } from './support/eventually.ts'
import { FakeKubelet } from './support/gateway/fake-kubelet.ts'
import { GatewayFixture } from './support/gateway/gateway-fixture.ts'

const pki = mkdtempSync(join(tmpdir(), 'oarlock-kubelets-'))
let fixture: GatewayFixture
let kubelet: FakeKubelet
let client: Client

before(async () => {
  mkdirSync(pki, { recursive: true })
  await readServingCertificates(pki, '127.0.0.1', Date.now())
  const certificates = await issueKubeletCertificates(pki, { node: 'n1', addresses: ['127.0.0.1'], ttlMs: 3_600_000 }, Date.now())
  // One authority of kubelets for all partitions, as `oarlock serve` shares it.
  const optionsOf = (dataDir: string) => {
    mkdirSync(join(dataDir, 'pki'), { recursive: true })
    for (const file of ['kubelet-ca.crt', 'kubelet-ca.key']) copyFileSync(join(pki, file), join(dataDir, 'pki', file))
    return {}
  }
  kubelet = await FakeKubelet.start(certificates)
  fixture = await GatewayFixture.start({ home: [], t1: ['Tenants'], r1: ['Resources'] }, optionsOf)
  client = fixture.client
  await client.resource(namespaceResource).create({ metadata: { name: 'a', labels: { 'oarlock.dev/tenant': 't1' } } })
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
  }
  // The second one reports the address of the first one.
  for (const name of ['n1', 'n2']) {
    await send('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } })
    await send('PATCH', `/api/v1/nodes/${name}/status`, { status })
  }
  for (const [name, nodeName] of Object.entries({ web: 'n1', silent: 'n1', misplaced: 'n2', lost: 'n9' })) {
    const spec = { nodeName, containers: [{ name: 'main', image: 'x' }] }
    await send('POST', '/api/v1/namespaces/a/pods', { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec })
  }
})
after(async () => {
  await fixture?.[Symbol.asyncDispose]()
  await kubelet?.[Symbol.asyncDispose]()
  rmSync(pki, { recursive: true, force: true })
})

const send = async (method: string, path: string, body: object) =>
  await (
    await client.request({
      ...{ method, path, body: JSON.stringify(body) },
      headers: { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' },
    })
  ).json()
const log = async (pod: string, query = '') =>
  await (await client.request({ method: 'GET', path: `/api/v1/namespaces/a/pods/${pod}/log${query}` })).text()
const upgradeText = (path: string, protocol: string, user = 'admin') =>
  [
    `POST /api/v1/namespaces/a/pods/${path} HTTP/1.1`,
    ...['Host: gateway', `Authorization: Bearer ${user}`, 'Connection: Upgrade', `Upgrade: ${protocol}`, 'Content-Length: 0'],
    // Of a client that pretends to be a gateway.
    ...['X-Oarlock-Node-Address: n1 10.0.0.1 1', 'X-Remote-User: other'],
    ...['', ''],
  ].join('\r\n')

/** A connection to the gateway on which an upgrade was asked for, and all that it has received. */
class Stream {
  text = ''
  readonly socket: TLSSocket

  constructor(request: string) {
    const { hostname, port } = new URL(fixture.url)
    this.socket = connect(Number(port), hostname, { ca: fixture.caCertificate })
    this.socket.allowHalfOpen = true
    this.socket.on('data', data => (this.text += data))
    this.socket.on('error', () => {})
    this.socket.write(request)
  }

  async until(wanted: RegExp): Promise<void> {
    await eventually(() => wanted.test(this.text), `${wanted} in the stream`)
  }
}

describe('streams through the gateway', () => {
  test('the log of a Pod is that of the kubelet in another partition', async () => {
    equal(await log('web'), 'line 1\nline 2\n')
    equal(kubelet.requests.at(-1)?.url, '/containerLogs/a/web/main')
  })

  test('a followed log continues, and its connections end with the client', async () => {
    const abort = new AbortController()
    const path = '/api/v1/namespaces/a/pods/web/log?follow=true'
    const { body } = await client.stream({ method: 'GET', path, signal: abort.signal, idleTimeoutMs: 0 })
    let text = ''
    for await (const chunk of body) {
      text += Buffer.from(chunk).toString()
      if (text.includes('line 5')) break
    }
    abort.abort()
    await eventually(() => kubelet.open.size === 0, 'the kubelet to see the end')
  })

  test('a log is followed although its first line comes after the timeouts of other requests', { timeout: 60_000 }, async () => {
    kubelet.silentMs = 31_000
    const path = '/api/v1/namespaces/a/pods/silent/log?follow=true'
    const { body } = await client.stream({ method: 'GET', path, timeoutMs: 50_000, idleTimeoutMs: 0 })
    let text = ''
    for await (const chunk of body) text += Buffer.from(chunk).toString()
    equal(text, 'late\n')
  })

  test('a client that leaves before the first line ends the request to the kubelet', async () => {
    kubelet.silentMs = 600_000
    const abort = new AbortController()
    const path = '/api/v1/namespaces/a/pods/silent/log?follow=true'
    const reading = client.stream({ method: 'GET', path, signal: abort.signal, idleTimeoutMs: 0 }).catch(() => {})
    await eventually(() => kubelet.open.size === 1, 'the request to reach the kubelet')
    abort.abort()
    await reading
    await eventually(() => kubelet.open.size === 0, 'the kubelet to see the end')
  })

  for (const [path, protocol] of [
    ['exec?command=cat&stdin=1&stdout=1', 'SPDY/3.1'],
    ['attach?stdout=1', 'websocket'],
    ['portforward', 'SPDY/3.1'],
  ] as const)
    test(`${path.split('?')[0]} by ${protocol} is a connection in both directions, each of which ends alone`, async () => {
      const stream = new Stream(upgradeText(`web/${path}`, protocol))
      await stream.until(/^HTTP\/1.1 101 Switching Protocols\r\n[\s\S]*upgrade: [\s\S]*\r\n\r\nhello $/)
      match(stream.text, new RegExp(`upgrade: ${protocol}\r\n`))
      const { headers } = kubelet.requests.at(-1) ?? {}
      equal(headers?.authorization, undefined)
      equal(headers?.['x-remote-user'], undefined)
      // More than the buffers on the way hold.
      const sent = 'x'.repeat(2_000_000)
      stream.socket.write(sent)
      await eventually(() => stream.text.length > sent.length, 'everything to come back')
      stream.socket.end('last')
      await once(stream.socket, 'end')
      ok(stream.text.endsWith('xlastafter the end'))
      await eventually(() => kubelet.open.size === 0, 'the kubelet to see the end')
    })

  test('a stream ends when its client or its kubelet ends', async () => {
    const first = new Stream(upgradeText('web/attach?stdout=1', 'SPDY/3.1'))
    await first.until(/hello/)
    first.socket.destroy()
    await eventually(() => kubelet.open.size === 0, 'the kubelet to see the end')
    const second = new Stream(upgradeText('web/attach?stdout=1', 'SPDY/3.1'))
    await second.until(/hello/)
    for (const each of kubelet.open) each.destroy()
    await once(second.socket, 'end')
    second.socket.end()
    await once(second.socket, 'close')
  })

  test('a followed log, a stream and a watch that was passed on end when the credential is revoked', { timeout: 120_000 }, async () => {
    const ann = await createClient({ cluster: { server: fixture.url, token: 'ann+system:masters', caCertificate: fixture.caCertificate } })
    const open = async (path: string) => {
      const abort = new AbortController()
      const { body } = await ann.stream({ method: 'GET', path, signal: abort.signal, idleTimeoutMs: 0 })
      const ended = (async () => {
        for await (const _ of body);
      })().catch(() => {})
      return { ended, abort }
    }
    const log = await open('/api/v1/namespaces/a/pods/web/log?follow=true')
    const watch = await open('/api/v1/namespaces/a/pods?watch=true&fieldSelector=metadata.name%3Dweb')
    const stream = new Stream(upgradeText('web/attach?stdout=1', 'SPDY/3.1', 'ann+system:masters'))
    await stream.until(/hello/)
    const closed = once(stream.socket, 'end')
    fixture.revoked.add('ann')
    try {
      await Promise.all([log.ended, closed, watch.ended])
    } finally {
      fixture.revoked.clear()
      for (const { abort } of [log, watch]) abort.abort()
      stream.socket.destroy()
      await ann.close()
    }
    await eventually(() => kubelet.open.size === 0, 'the kubelet to see the end')
  })

  test('a user without the right, or without a credential, gets no stream and does not learn where a Pod is', async () => {
    const before = kubelet.requests.length
    for (const pod of ['web', 'lost']) {
      const rejected = new Stream(upgradeText(`${pod}/exec?command=id&stdout=1`, 'SPDY/3.1', 'eve'))
      await rejected.until(
        /^HTTP\/1.1 403 [\s\S]*pods \\"(web|lost)\\" is forbidden: User \\"eve\\" cannot create resource \\"pods\/exec\\"/,
      )
      ok(!/node|n1|n9/.test(rejected.text))
    }
    await new Stream(upgradeText('web/attach?stdout=1', 'SPDY/3.1').replace(/Authorization.*\r\n/, '')).until(/^HTTP\/1.1 401 /)
    const impersonating = upgradeText('web/attach?stdout=1', 'SPDY/3.1').replace('Connection:', 'Impersonate-User: eve\r\nConnection:')
    await new Stream(impersonating).until(/^HTTP\/1.1 403 [\s\S]*impersonation is not supported/)
    equal(kubelet.requests.length, before)
  })

  test('what is wrong is said with the names of Pod and Node', async () => {
    await new Stream(upgradeText('none/attach?stdout=1', 'SPDY/3.1')).until(/^HTTP\/1.1 404 [\s\S]*pods \\"none\\" not found/)
    await new Stream(upgradeText('lost/attach?stdout=1', 'SPDY/3.1')).until(
      /^HTTP\/1.1 404 [\s\S]*nodes \\"n9\\" not found: no partition has the node of this pod/,
    )
    const elsewhere = new Stream(upgradeText('web/attach?stdout=1', 'SPDY/3.1').replace('/namespaces/a/', '/namespaces/z/'))
    await elsewhere.until(/^HTTP\/1.1 404 [\s\S]*namespaces \\"z\\" not found/)
    const misplaced = await log('misplaced').then(
      () => 'no error',
      error => String(error),
    )
    match(misplaced, /the kubelet of node n2 at 127.0.0.1:[0-9]+ cannot be reached: its certificate is not for the name n2/)
  })

  test('the header of a Node is ignored from others than a gateway', async () => {
    const direct = await fixture.direct('t1')
    const answer = direct.request({
      ...{ method: 'GET', path: '/api/v1/namespaces/a/pods/web/log' },
      headers: { 'x-oarlock-node-address': `n1 127.0.0.1 ${kubelet.port}` },
    })
    match(
      await answer.then(
        () => 'no error',
        error => String(error),
      ),
      /nodes "n1" not found/,
    )
  })

  test('a user with too many streams gets 429 until some of them end', async () => {
    const streams = Array.from({ length: 100 }, () => new Stream(upgradeText('web/attach?stdout=1', 'SPDY/3.1')))
    for (const stream of streams) await stream.until(/hello/)
    await new Stream(upgradeText('web/attach?stdout=1', 'SPDY/3.1')).until(/^HTTP\/1.1 429 [\s\S]*too many streams: admin has 100 open/)
    for (const { socket } of streams) socket.destroy()
    await eventually(async () => (await log('web').catch(() => '')) !== '', 'the streams to be no longer counted')
  })
})
