/** 2,600 concurrent connections of each kind against `oarlock up` that may open 2,048 files, while a Run works. */
import { equal, ok } from 'node:assert/strict'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemNamespace } from '../src/api/index.ts'
import { type Client, leaseResource } from '../src/kubernetes/client/index.ts'
import { checkHealth, type Flood, getRequest, respond, startFlood } from './support/connection-flood.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { StackFixture } from './support/stacks.ts'

const openFiles = 2_048
const connections = 2_600

async function createAccount(client: Client, name: string): Promise<string> {
  const path = '/api/v1/namespaces/default/serviceaccounts'
  await client.request({ method: 'POST', path, body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } } })
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3_600 } }
  const response = await client.request({ method: 'POST', path: `${path}/${name}/token`, body })
  return ((await response.json()) as { status: { token: string } }).status.token
}

test(`${connections} connections of each kind do not end a process with ${openFiles} files, nor interrupt its worker`, async t => {
  const dataDir = makeDataDir()
  t.after(() => removeDirectory(dataDir))
  const oarlock = await startOarlock(dataDir, [], {}, openFiles)
  t.after(() => oarlock.kill())
  const { client, child, httpUrl, output } = oarlock
  const token = await createAccount(client, 'mallory')
  const stacks = new StackFixture(client)
  const stop = join(dataDir, 'stop')
  const script = `touch ${stop}.started; while [ ! -e ${stop} ]; do sleep 0.1; done`
  await stacks.create('long', { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['sh', '-c', script] } })
  await eventually(() => existsSync(`${stop}.started`), 'the engine to start', 60_000)
  const countFiles = () => readdirSync(`/proc/${child.pid}/fd`).length
  const filesBefore = countFiles()
  const renewals = async () =>
    (await client.resource(leaseResource).listAll({ namespace: systemNamespace })).items
      .filter(({ metadata }) => metadata.name.startsWith('default-'))
      .map(({ spec }) => String(spec?.renewTime))
      .join()

  const api = { target: new URL(client.server).host, tls: true, connections }
  const http = { target: new URL(httpUrl).host, tls: false, connections }
  const socket = { target: join(dataDir, 'api.sock'), tls: false, connections }
  const floods: Flood[] = await Promise.all([
    startFlood({ ...api, send: getRequest('/api', token) }),
    startFlood({ ...api, tls: false, send: '' }),
    startFlood({ ...api, send: 'GET /join HTTP/1.1\r\nHost: x\r\nX-Slow: ' }),
    startFlood({ ...http, send: getRequest('/metrics') }),
    startFlood({ ...http, send: 'POST /state/default/long HTTP/1.1\r\nHost: x\r\nContent-Length: 9' }),
    startFlood({ ...socket, send: getRequest('/api', token) }),
  ])
  t.after(() => Promise.all(floods.map(flood => flood.stop())))
  await Promise.all(floods.map(flood => flood.attempted()))

  const renewedBefore = await renewals()
  const apiHealth = `${client.server}/healthz`
  for (const url of [apiHealth, `${httpUrl}/healthz`]) await checkHealth(url)
  equal((await eventually(() => respond(`${client.server}/api`, { authorization: `Bearer ${token}` }), 'a response'))?.status, 503)
  ok(countFiles() < openFiles * 0.75, `${countFiles()} files`)
  await eventually(async () => (await renewals()) !== renewedBefore, 'the worker to renew its Lease')

  await Promise.all(floods.splice(0).map(flood => flood.stop()))
  await eventually(() => countFiles() < filesBefore + 50, 'the connections to be closed')
  equal((await respond(`${client.server}/api`, { authorization: `Bearer ${token}` }))?.status, 200)
  writeFileSync(stop, '')
  await stacks.untilReady('long')
  equal((await stacks.runsOf('long')).length, 1)
  equal(child.exitCode, null, output())
  equal(await oarlock.stop(), 0)
})
