/** 2,600 concurrent connections of each kind against the listeners of roles whose processes may open 2,048 files. */
import { equal, ok } from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { type Client, configMapResource } from '../src/kubernetes/client/index.ts'
import { checkHealth, type Flood, getRequest, respond, startFlood } from './support/connection-flood.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { accountKubeconfig, controllerArgs, type RoleProcess, RoleProcesses, startApiRole } from './support/role-process.ts'

const openFiles = 2_048
const connections = 2_600

const base = makeDataDir()
const roles = new RoleProcesses(base)
let client: Client
let ca: string

before(async () => {
  ;({ client, ca } = await startApiRole(roles))
})
after(async () => {
  await client?.close()
  await roles.stopAll()
  removeDirectory(base)
})

async function start(name: string, account: string, ...args: string[]): Promise<RoleProcess> {
  const kubeconfig = roles.file(name, 'kubeconfig', await accountKubeconfig(client, account, ca))
  return await roles.start(name, [...args, '--kubeconfig', kubeconfig, '--data', '.'], /^ready: /m, {}, openFiles)
}

const endpoint = async (name: string): Promise<string> => {
  const { data } = await client.resource(configMapResource).get(`oarlock-endpoint-${name}`, { namespace: 'oarlock-system' })
  return data?.url ?? ''
}

for (const { role, listeners } of [
  {
    role: 'stores',
    listeners: async () => {
      const process = await start('stores', 'oarlock-stores', 'stores', '--listen', '127.0.0.1:0')
      return { process, urls: [process.printed('stores')], path: '/state/default/any' }
    },
  },
  {
    role: 'join-service',
    listeners: async () => {
      const process = await start('join', 'oarlock-join-service', 'join-service', '--listen', '127.0.0.1:0')
      return { process, urls: [process.printed('join')], path: '/join' }
    },
  },
  {
    role: 'controller',
    listeners: async () => {
      const process = await start('controller', 'oarlock-controller', ...controllerArgs)
      return { process, urls: [await endpoint('queue'), process.printed('health')], path: '/queue' }
    },
  },
]) {
  test(`oarlock ${role} survives ${connections} connections of each kind with ${openFiles} files, and reports its health`, async t => {
    const { process, urls, path } = await listeners()
    const { child, output } = process
    const countFiles = () => readdirSync(`/proc/${child.pid}/fd`).length
    const filesBefore = countFiles()
    const floods: Flood[] = []
    t.after(() => Promise.all(floods.map(flood => flood.stop())))
    const token = JSON.parse(await accountKubeconfig(client, 'oarlock-pool', ca)).users[0].user.token as string
    for (const url of urls) {
      const order = { target: new URL(url).host, tls: url.startsWith('https:'), connections }
      floods.push(
        await startFlood({ ...order, send: getRequest(path, token) }),
        await startFlood({ ...order, send: `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n` }),
        await startFlood({ ...order, tls: false, send: '' }),
      )
    }
    await Promise.all(floods.map(flood => flood.attempted()))
    for (const url of urls) await checkHealth(`${url}/healthz`)
    ok(countFiles() < openFiles * 0.75, `${countFiles()} files`)
    // The first listener of each role is that for tokens, and the flood with one the first on it.
    ok((floods[0]?.counts().responses['503'] ?? 0) > 0, JSON.stringify(floods[0]?.counts()))
    for (const { counts } of floods) ok(counts().open <= openFiles / 2, JSON.stringify(counts()))
    await Promise.all(floods.splice(0).map(flood => flood.stop()))
    await eventually(() => countFiles() < filesBefore + 50, 'the connections to be closed', 30_000)
    for (const url of urls) equal((await respond(`${url}/readyz`))?.status, 200, output())
    equal(child.exitCode, null, output())
    equal(await process.stop(), 0)
  })
}
