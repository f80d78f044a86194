import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { createClient } from '../../kubernetes/client/index.ts'
import { type ApiServer, startServer } from '../../kubernetes/server/index.ts'
import { TokenReviewWarmup, type WarmedPartition } from './token-review-warmup.ts'

/** A partition whose server can be started and stopped; its port and its keys stay. */
async function start(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-warmup-'))
  let server: ApiServer | undefined
  let port = 0
  const serve = async () => {
    server = await startServer({ dataDir, listen: { port } })
    port = Number(new URL(server.url).port)
    return server
  }
  const stop = async () => await server?.close({ graceMs: 10 })
  t.after(async () => {
    await stop()
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
  })
  const { url, caCertificate, issueToken } = await serve()
  const issue = () => issueToken({ name: 'w1', groups: [], ttlMs: 60_000 })
  return { partition: { name: 't1', server: url, caCertificate }, issue, serve, stop, server: () => server as ApiServer }
}

function warmUp(t: TestContext, partitions: readonly WarmedPartition[], token: () => string) {
  const warnings: object[] = []
  const options = {
    log: { warn: (fields: object) => void warnings.push(fields) },
    refresh: async () => {},
    backoff: { minMs: 20, maxMs: 50 },
  }
  const warmup = new TokenReviewWarmup({ ...options, token, partitions: () => partitions })
  t.after(() => warmup.close())
  warmup.start()
  return warnings
}

/** Succeeded SelfSubjectReviews, by the metrics of the server. */
async function reviewsOf(server: ApiServer): Promise<number> {
  const client = await createClient({ kubeconfig: server.kubeconfigPath })
  const text = await (await client.request({ method: 'GET', path: '/metrics' })).text()
  await client.close()
  const samples = text.split('\n').filter(line => /^apiserver_request_total\{.*"selfsubjectreviews"/.test(line) && line.includes('"201"'))
  return samples.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

test('a partition that accepts the token is shown it once', async t => {
  const { partition, issue, server } = await start(t)
  const token = issue()
  deepEqual(
    warmUp(t, [partition], () => token),
    [],
  )
  await eventually(async () => (await reviewsOf(server())) === 1, 'the token to be shown')
  await new Promise(resolve => setTimeout(resolve, 200))
  equal(await reviewsOf(server()), 1)
})

test('a partition that does not answer is asked again with backoff, and reported once', async t => {
  const { partition, issue, serve, stop, server } = await start(t)
  const token = issue()
  await stop()
  const warnings = warmUp(t, [partition], () => token)
  await eventually(() => warnings.length > 0, 'the first attempt')
  match(JSON.stringify(warnings), /"partition":"t1".*connection refused/)
  await serve()
  await eventually(async () => (await reviewsOf(server())) === 1, 'the token to be shown')
  equal(warnings.length, 1)
})

test('a token that a partition rejects is replaced by the next one', async t => {
  const { partition, issue, server } = await start(t)
  let token = 'invalid'
  const warnings = warmUp(t, [partition], () => token)
  await eventually(() => warnings.length > 0, 'the first attempt')
  match(JSON.stringify(warnings), /Unauthorized/)
  token = issue()
  await eventually(async () => (await reviewsOf(server())) === 1, 'the new token to be shown')
})

test('partitions that are silent do not delay another one', async t => {
  const { partition, issue, server } = await start(t)
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.after(() => silent.close())
  const { port } = silent.address() as { port: number }
  const others = [1, 2, 3].map(number => ({ name: `silent-${number}`, server: `https://127.0.0.1:${port}`, caCertificate: undefined }))
  const startedMs = performance.now()
  const token = issue()
  warmUp(t, [...others, partition], () => token)
  await eventually(async () => (await reviewsOf(server())) === 1, 'the token to be shown')
  ok(performance.now() - startedMs < 5_000)
})
