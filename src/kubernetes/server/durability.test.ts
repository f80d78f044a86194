import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { silentLog } from '../util/index.ts'
import { makeDataDir, startTestServer } from './server.testing.ts'

const program = `
import { startServer } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
const server = await startServer({ dataDir: process.argv[1], listen: { port: 0 } })
console.log(server.url)
`

async function startChild(dataDir: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const isDead = once(child, 'exit').then(([code]) => assert.fail(`the server ended with code ${code} before it listened`))
  const [url] = (await Promise.race([once(createInterface(child.stdout!), 'line'), isDead])) as [string]
  isDead.catch(() => {})
  return { child, url }
}

test('a killed process releases the lock, a running one keeps it', async () => {
  const dataDir = makeDataDir()
  const { child } = await startChild(dataDir)
  try {
    await assert.rejects(startTestServer({ dataDir }), { code: 'DataInUse' })
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  await (await startTestServer({ dataDir })).close()
  rmSync(dataDir, { recursive: true, force: true })
})

test('objects, tokens, certificates and watch revisions survive a restart', async () => {
  const dataDir = makeDataDir()
  const first = await startTestServer({ dataDir })
  const maps = '/api/v1/namespaces/default/configmaps'
  const { body: a } = await first.call(maps, { body: { metadata: { name: 'a' } } })
  const { body: b } = await first.call(maps, { body: { metadata: { name: 'b' } } })
  const token = first.server.issueToken({ name: 'ann', groups: ['system:masters'], ttlMs: 60_000 })
  await first.close()
  const second = await startTestServer({ dataDir })
  assert.equal(second.server.caCertificate, first.server.caCertificate)
  assert.equal(second.adminToken, first.adminToken)
  assert.deepEqual((await second.call(`${maps}/b`, { token })).body, b)
  const missed = await second.watch(`${maps}?watch=1&resourceVersion=${a.metadata.resourceVersion}`)
  assert.equal((await missed.next())?.type, 'ERROR', 'b came after a, and history is gone')
  const current = await second.watch(`${maps}?watch=1&resourceVersion=${b.metadata.resourceVersion}`)
  await second.call(`${maps}/a`, { method: 'DELETE' })
  const event = await current.next()
  assert.deepEqual([event?.type, event?.object.metadata.name], ['DELETED', 'a'])
  current.stop()
  await second.close()
  rmSync(dataDir, { recursive: true, force: true })
})

test('an address in use is an AddressInUse error, and the data directory is released', async () => {
  const taken = await startTestServer()
  const dataDir = makeDataDir()
  await assert.rejects(startTestServer({ dataDir, listen: { port: taken.server.port } }), {
    code: 'AddressInUse',
    message: /is in use by another process/,
  })
  await (await startTestServer({ dataDir })).close()
  await taken.close()
  rmSync(dataDir, { recursive: true, force: true })
})

test('a start that fails because the address is in use retains nothing', async t => {
  const taken = await startTestServer()
  t.after(() => taken.close())
  const dataDir = makeDataDir()
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const failToStart = async () => {
    const log = { ...silentLog }
    await assert.rejects(startTestServer({ dataDir, listen: { port: taken.server.port }, log }), { code: 'AddressInUse' })
    return new WeakRef(log)
  }
  const log = await failToStart()
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  // References of pending callbacks go away within some turns of the event loop.
  for (let turn = 0; turn < 100 && log.deref(); turn++) {
    await setImmediate()
    collectGarbage()
  }
  assert.equal(log.deref(), undefined)
})

test('an address of another machine is an AddressInvalid error', async () => {
  for (const host of ['203.0.113.1', 'no-such-host.invalid']) {
    const dataDir = makeDataDir()
    await assert.rejects(startTestServer({ dataDir, listen: { host, port: 1 } }), {
      code: 'AddressInvalid',
      message: /is not an address of this machine/,
    })
    rmSync(dataDir, { recursive: true, force: true })
  }
})
