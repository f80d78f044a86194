/** More connections than a process may have files do not end it: it answers health checks, and existing clients continue. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:https'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { configMapResource, createClient } from '../src/kubernetes/client/index.ts'
import { type Flood, getRequest, startFlood } from './support/connection-flood.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { runProgram } from './support/run-program.ts'

const launcher = join(import.meta.dirname, '..', 'bin', 'oarlock.js')
const openFiles = 256

async function startServe(t: TestContext): Promise<{ child: ChildProcess; dataDir: string; output(): string }> {
  const dataDir = makeDataDir()
  const args = ['-c', `ulimit -n ${openFiles} && exec "$0" "$@"`, process.execPath, launcher, 'serve', '--data', dataDir]
  const child = spawn('sh', [...args, '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => (output += text))
  t.after(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    removeDirectory(dataDir)
  })
  for await (const line of createInterface({ input: child.stdout })) if (/^ *data +/.test(line)) break
  equal(child.exitCode, null, output)
  return { child, dataDir, output: () => output }
}

/** On a new connection, which may be closed while others arrive: then on another one. */
async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  const attempt = async () => {
    const request = get(url, { rejectUnauthorized: false, headers, agent: false })
    const [response] = await once(request, 'response')
    response.resume()
    return response.statusCode as number
  }
  return await eventually(() => attempt().catch(() => undefined), `a response to ${url}`)
}

test('oarlock serve survives twice as many connections as it may open files, of one account without rights and of anonymous clients', async t => {
  const { child, dataDir, output } = await startServe(t)
  const client = await createClient({ kubeconfig: join(dataDir, 'kubeconfig'), connections: 1 })
  t.after(() => client.close())
  const maps = client.resource(configMapResource)
  await maps.create({ metadata: { name: 'before', namespace: 'default' }, data: {} })
  const { token } = await accountToken(client, 'mallory')
  const target = new URL(client.server).host
  const order = { target, tls: true, connections: 2 * openFiles }
  const floods: Flood[] = []
  t.after(() => Promise.all(floods.map(flood => flood.stop())))
  const accounts = await startFlood({ ...order, send: getRequest('/api', token) })
  floods.push(accounts)
  // Before the others begin: of one network, they would close the connections of the account before it has authenticated.
  await eventually(() => (accounts.counts().responses['503'] ?? 0) > 0, 'the account to be refused')
  floods.push(
    await startFlood({ ...order, tls: false, send: '' }),
    await startFlood({ ...order, target: join(dataDir, 'api.sock'), tls: false, send: getRequest('/version') }),
  )
  await Promise.all(floods.map(flood => flood.attempted()))
  for (let i = 0; i < 5; i++) {
    equal(await statusOf(`${client.server}/healthz`), 200)
    equal(await statusOf(`${client.server}/healthz`, { authorization: `Bearer ${token}` }), 200)
    equal(await statusOf(`${client.server}/api`, { authorization: `Bearer ${token}` }), 503)
    // The connection of the administrator is older than the flood, and others can be opened.
    await maps.create({ metadata: { name: `during-${i}`, namespace: 'default' }, data: {} })
    equal(await statusOf(`${client.server}/version`), 200)
  }
  await Promise.all(floods.splice(0).map(flood => flood.stop()))
  await eventually(async () => (await statusOf(`${client.server}/api`, { authorization: `Bearer ${token}` })) === 200, 'the recovery')
  ok(child.exitCode === null, output())
})

test('without a free file, stores and the process pool name the limit, store nothing wrong, and work again later', async t => {
  const directory = makeDataDir()
  t.after(() => removeDirectory(directory))
  const program = join(import.meta.dirname, 'support', 'exhausted-files-child.ts')
  const { stdout } = await runProgram('sh', ['-c', `ulimit -n 128 && exec "$0" "$@"`, process.execPath, program, directory])
  const { exhausted, recovered } = JSON.parse(stdout) as Record<'exhausted' | 'recovered', Record<string, string>>
  match(exhausted?.log ?? '', /EMFILE/)
  match(exhausted?.state ?? '', /the process has its maximum of 128 open files: raise its limit/)
  match(exhausted?.worker ?? '', /^cannot start a worker: the process has its maximum of 128 open files: raise its limit/)
  equal(exhausted?.workers, '')
  deepEqual(recovered, { log: '{"kind":"appended","offset":4}', state: '"no lock"', worker: '"started"', workers: 'default-1' })
})

async function accountToken(client: Awaited<ReturnType<typeof createClient>>, name: string): Promise<{ token: string }> {
  const path = '/api/v1/namespaces/default/serviceaccounts'
  await client.request({ method: 'POST', path, body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } } })
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3_600 } }
  const response = await client.request({ method: 'POST', path: `${path}/${name}/token`, body })
  const { status } = (await response.json()) as { status: { token: string } }
  match(status.token, /./)
  return { token: status.token }
}
