import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { Agent, fetch } from 'undici'
import { parse } from 'yaml'
import { makeDataDir, startTestServer } from './test-server.ts'

const kills = Number(process.env.OARLOCK_TEST_KILLS ?? 3)
const writers = 16

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

/** What a client knows of a key: the newest acknowledged value, and one that was under way when the server died. */
type Known = { acknowledged: number; inDoubt: number | undefined }

test(`kill -9 under ${writers} writers, ${kills} times: every acknowledged write is there (invariant 5)`, async () => {
  const dataDir = makeDataDir()
  const known: Known[] = Array.from({ length: writers }, () => ({ acknowledged: 0, inDoubt: undefined }))
  try {
    for (let round = 0; round < kills; round++) {
      const { child, url } = await startChild(dataDir)
      const kubeconfig = parse(readFileSync(join(dataDir, 'kubeconfig'), 'utf8'))
      const ca = Buffer.from(kubeconfig.clusters[0].cluster['certificate-authority-data'], 'base64').toString()
      const agent = new Agent({ connect: { ca } })
      const headers = { authorization: `Bearer ${kubeconfig.users[0].user.token}`, 'content-type': 'application/apply-patch+yaml' }
      let isKilled = false
      let written = 0
      const write = async (writer: number) => {
        const mine = known[writer]!
        while (!isKilled) {
          const value = Math.max(mine.acknowledged, mine.inDoubt ?? 0) + 1
          mine.inDoubt = value
          const body = JSON.stringify({
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name: `w${writer}` },
            data: { value: String(value) },
          })
          try {
            const path = `/api/v1/namespaces/default/configmaps/w${writer}?fieldManager=test`
            const response = await fetch(url + path, { method: 'PATCH', headers, body, dispatcher: agent })
            assert.ok(response.ok, await response.clone().text())
            await response.arrayBuffer()
          } catch (error) {
            if (isKilled) return
            throw error
          }
          mine.acknowledged = value
          mine.inDoubt = undefined
          if (++written === 100 + 60 * round) {
            isKilled = true
            child.kill('SIGKILL')
          }
        }
      }
      await Promise.all([once(child, 'exit'), ...known.map((_, writer) => write(writer))])
      await agent.destroy()

      const server = await startTestServer({ dataDir })
      try {
        for (const [writer, { acknowledged, inDoubt }] of known.entries()) {
          const { body } = await server.call<{ data?: { value: string } }>(`/api/v1/namespaces/default/configmaps/w${writer}`)
          const found = Number(body.data?.value ?? 0)
          assert.ok(
            found === acknowledged || found === inDoubt,
            `w${writer}: found ${found}, acknowledged ${acknowledged}, in doubt ${inDoubt}`,
          )
          known[writer] = { acknowledged: found, inDoubt: undefined }
        }
      } finally {
        await server.close()
      }
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})

test('a process that was killed leaves no lock, one that lives keeps it', async () => {
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

test('a restart keeps objects, tokens, certificates and watches that missed nothing', async () => {
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

test('an address in use is a clear error, and the data directory is free again', async () => {
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
