/**
 * Copies of the directory of the stores, with real processes: of two copies only one serves, and never one without the states that the
 * other has written.
 */
import { equal, match, notEqual, rejects } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { get, request } from 'node:https'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type StackSpec, stackResource } from '../src/api/index.ts'
import type { Client } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { accountKubeconfig, type RoleProcess, RoleProcesses, startApiRole } from './support/role-process.ts'

const base = makeDataDir()
const roles = new RoleProcesses(base)
let client: Client
let kubeconfig: string
let adminToken: string

before(async () => {
  const api = await startApiRole(roles)
  client = api.client
  adminToken = readFileSync(join(api.api.directory, 'pki', 'admin-token'), 'utf8').trim()
  kubeconfig = await accountKubeconfig(client, 'oarlock-stores', api.ca)
})
after(async () => {
  await client?.close()
  await roles.stopAll()
  removeDirectory(base)
})

async function start(name: string, ...args: string[]): Promise<RoleProcess> {
  const file = roles.file(name, 'kubeconfig', kubeconfig)
  return await roles.start(name, ['stores', '--listen', '127.0.0.1:0', '--kubeconfig', file, '--data', '.', ...args], /^ *API /m)
}

function copy(from: string, to: string): void {
  const { path, uid } = roles.directory(to)
  execFileSync('cp', ['-a', `${roles.directory(from).path}/.`, path])
  if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${uid}`, path])
}

/** The status of `/readyz`; undefined if the process does not answer. */
async function readyz(role: RoleProcess): Promise<number | undefined> {
  const request = get(`${role.printed('stores')}/readyz`, { rejectUnauthorized: false, agent: false })
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode
  } catch {
    return undefined
  }
}
const ready = (role: RoleProcess) => eventually(async () => (await readyz(role)) === 200, 'the stores to be ready')

test('copies of the directory are refused beside the original and after it, and a killed original starts again immediately', async t => {
  let original = await start('original')
  await ready(original)
  copy('original', 'copy')
  await rejects(
    start('copy'),
    new RegExp(`exited with 7 .*served by process ${original.child.pid} on .* at ${original.printed('stores')}`, 's'),
  )
  await ready(original)

  // The Lease of the killed process lasts for 15 s.
  await original.stop('SIGKILL')
  const startMs = performance.now()
  original = await start('original')
  await ready(original)
  t.diagnostic(`ready ${Math.round(performance.now() - startMs)} ms after SIGKILL`)

  copy('original', 'backup')
  equal(await original.stop(), 0)
  await rejects(start('copy'), /exited with 7 .*are an older copy/s)
  await rejects(start('backup'), /exited with 7 .*are an older copy .*--replace-stores/s)
  original = await start('original')
  await ready(original)
  equal(await original.stop(), 0)
  const restored = await start('backup', '--replace-stores')
  await ready(restored)
  equal(await restored.stop(), 0)
  await rejects(start('original'), /exited with 7 .*are an older copy/s)
})

test('of a paused process and a copy that has replaced it, the paused one exits when it resumes', async () => {
  const paused = await start('backup')
  await ready(paused)
  copy('backup', 'replacement')
  paused.child.kill('SIGSTOP')
  // Waits until the Lease has expired.
  const replacement = await start('replacement', '--replace-stores')
  await ready(replacement)
  const exited = once(paused.child, 'exit')
  paused.child.kill('SIGCONT')
  // It exits when it has seen that the other process renews the Lease.
  notEqual(await readyz(paused), 200)
  equal((await exited)[0], 7)
  match(paused.output(), /served by process \d+ on|are an older copy/)
  await ready(replacement)
  await rejects(start('backup'), /exited with 7/)
  equal(await replacement.stop(), 0)
})

test('what a client sends while the process is paused and replaced is not acknowledged when it resumes', async () => {
  const paused = await start('replacement')
  await ready(paused)
  const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } }, suspend: true }
  await client.resource(stackResource).create({ metadata: { name: 'web', namespace: 'default' }, spec })
  const url = `${paused.printed('stores')}/state/default/web`
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ version: 4, serial: 1, lineage: 'x', resources: [] })
  const post = () => {
    const sent = request(url, {
      method: 'POST',
      rejectUnauthorized: false,
      agent: false,
      headers: { ...headers, 'content-length': body.length },
    })
    const status = once(sent, 'response').then(
      ([response]) => (response as IncomingMessage).statusCode,
      () => undefined,
    )
    return { sent, status }
  }
  const allowed = post()
  allowed.sent.end(body)
  equal(await allowed.status, 200, 'while it serves')

  copy('replacement', 'next')
  const { sent, status } = post()
  sent.write(body.slice(0, 10))
  // Until it was authorized and waits for the rest.
  await sleep(2_000)
  paused.child.kill('SIGSTOP')
  const next = await start('next', '--replace-stores')
  await ready(next)
  const exited = once(paused.child, 'exit')
  sent.end(body.slice(10))
  paused.child.kill('SIGCONT')
  notEqual(await status, 200)
  equal((await exited)[0], 7)
  equal(await next.stop(), 0)
})
