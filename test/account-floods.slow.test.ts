/** Floods of one account with few permissions against `oarlock up`, over HTTP/2: streams, watches, followers of logs. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Client, configMapResource, createClient } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { StackFixture } from './support/stacks.ts'

/** Concurrent streams of one connection that the server allows. */
const streamsPerSession = 250
const followersPerUser = 250
const maps = '/api/v1/namespaces/default/configmaps'

const dataDir = makeDataDir()
let oarlock: OarlockProcess
let floodToken: string
let otherToken: string
/** Another account with the same permissions. */
let other: Client
const sessions: ClientHttp2Session[] = []

before(async () => {
  oarlock = await startOarlock(dataDir)
  const rules = [
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch', 'create'] },
    { apiGroups: ['oarlock.dev'], resources: ['runs', 'runs/log', 'stacks', 'stacks/log'], verbs: ['get', 'list'] },
  ]
  const { client } = oarlock
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const metadata = { name: 'reader' }
  const group = '/apis/rbac.authorization.k8s.io/v1/namespaces/default'
  await client.request({ method: 'POST', path: `${group}/roles`, body: { apiVersion, kind: 'Role', metadata, rules } })
  const subjects = ['mallory', 'alice'].map(name => ({ kind: 'ServiceAccount', name, namespace: 'default' }))
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' }
  await client.request({
    method: 'POST',
    path: `${group}/rolebindings`,
    body: { apiVersion, kind: 'RoleBinding', metadata, roleRef, subjects },
  })
  floodToken = await createAccount('mallory')
  otherToken = await createAccount('alice')
  other = await createClient({ cluster: { server: client.server, caCertificate: await certificate(), token: otherToken } })
})
after(async () => {
  endFlood()
  await other?.close()
  await oarlock?.stop()
  removeDirectory(dataDir)
})

const certificate = async () => await (await oarlock.client.request({ method: 'GET', path: '/join/ca' })).text()

async function createAccount(name: string): Promise<string> {
  const path = '/api/v1/namespaces/default/serviceaccounts'
  await oarlock.client.request({ method: 'POST', path, body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } } })
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3_600 } }
  const response = await oarlock.client.request({ method: 'POST', path: `${path}/${name}/token`, body })
  return ((await response.json()) as { status: { token: string } }).status.token
}

/** Opens streams that are not read, and returns the count of responses by status, which grows. */
async function flood(count: number, path: string): Promise<Map<number, number>> {
  const statuses = new Map<number, number>()
  for (let opened = 0; opened < count; ) {
    const session = connect(oarlock.client.server, { rejectUnauthorized: false })
    session.on('error', () => {})
    sessions.push(session)
    await once(session, 'remoteSettings')
    for (let i = 0; i < streamsPerSession && opened < count; i++, opened++) {
      const stream = session.request({ ':path': path, authorization: `Bearer ${floodToken}` })
      stream.on('error', () => {})
      stream.on('response', ({ ':status': status = 0 }) => {
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        if (status === constants.HTTP_STATUS_TOO_MANY_REQUESTS) stream.close()
      })
    }
  }
  return statuses
}

/** What another account reads first. */
async function firstChunk(path: string): Promise<string> {
  const session = connect(oarlock.client.server, { rejectUnauthorized: false })
  sessions.push(session)
  const [chunk] = await once(session.request({ ':path': path, authorization: `Bearer ${otherToken}` }), 'data')
  return String(chunk)
}

function endFlood(): void {
  for (const session of sessions.splice(0)) session.destroy()
}

const residentMiB = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${oarlock.child.pid}/status`, 'utf8'))?.[1]) / 1024

const sumOf = (statuses: Map<number, number>) => [...statuses.values()].reduce((sum, count) => sum + count, 0)

let count = 0
/** Writes and reads of another account do not wait for the flood. */
async function checkOthers(): Promise<void> {
  const times: number[] = []
  for (let i = 0; i < 11; i++) {
    const startMs = performance.now()
    const name = `alice-${++count}`
    await other.resource(configMapResource).create({ metadata: { name, namespace: 'default' }, data: {} })
    await other.resource(configMapResource).get(name, { namespace: 'default' })
    times.push(performance.now() - startMs)
  }
  // The median, and a limit far above what a loaded machine needs, which has the client of the flood too.
  times.sort((one, another) => one - another)
  ok((times[5] ?? 0) < 10_000, `a write and a read took ${times.map(Math.round)} ms`)
  equal(oarlock.child.exitCode, null, oarlock.output())
}

test('5,000 watches of one account delay no other one', async () => {
  const statuses = await flood(5_000, `${maps}?watch=true`)
  await eventually(() => sumOf(statuses) === 5_000, 'the watches to be open', 60_000)
  deepEqual([...statuses], [[200, 5_000]])
  await checkOthers()
  endFlood()
})

test('5,000 lists whose responses are not read delay no other account and take bounded memory', async () => {
  const data = { text: 'x'.repeat(500_000) }
  for (let i = 0; i < 4; i++)
    await oarlock.client.resource(configMapResource).create({ metadata: { name: `large-${i}`, namespace: 'default' }, data })
  const idleMiB = residentMiB()
  const statuses = await flood(5_000, maps)
  await eventually(() => sumOf(statuses) >= 500, 'the responses', 60_000)
  await checkOthers()
  await checkOthers()
  // 500, and those that start in one tick.
  ok((statuses.get(200) ?? 0) < 1_000, JSON.stringify([...statuses]))
  // At most 1,000 responses of 256 KiB, and what HTTP/2 and the garbage collector need.
  ok(residentMiB() - idleMiB < 600, `${idleMiB} MiB before, ${residentMiB()} MiB after`)
  endFlood()
  const flooder = await createClient({ cluster: { server: oarlock.client.server, caCertificate: await certificate(), token: floodToken } })
  await eventually(
    async () => (await flooder.resource(configMapResource).get('large-0', { namespace: 'default' })) !== undefined,
    'the queue to be empty',
    60_000,
  )
  await flooder.close()
})

test('followers of logs of one account are limited, and another account follows', async () => {
  const stacks = new StackFixture(oarlock.client)
  const stop = join(dataDir, 'stop')
  const script = `echo hello; touch ${stop}.started; while [ ! -e ${stop} ]; do sleep 0.1; done`
  await stacks.create('long', { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['sh', '-c', script] } })
  await eventually(() => existsSync(`${stop}.started`), 'the engine to start', 60_000)
  const [run] = await stacks.runsOf('long')
  const path = `/logs/default/${run!.metadata.name}?follow=true`
  const statuses = await flood(600, path)
  await eventually(() => sumOf(statuses) === 600, 'the responses', 60_000)
  deepEqual([...statuses].sort(), [
    [200, followersPerUser],
    [429, 600 - followersPerUser],
  ])
  match(await firstChunk(path), /hello|started/)
  await checkOthers()
  endFlood()
  writeFileSync(stop, '')
  await stacks.untilReady('long')
})
