import { deepEqual, equal, match } from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import type { WorkerHealth } from '../../execution/worker/index.ts'
import { startWorkerHealth } from './worker-health.ts'

test('each endpoint returns its own status, with the reasons', async t => {
  let health: WorkerHealth = { live: [], ready: ['not registered'], started: ['not registered'] }
  const { address, close } = await startWorkerHealth({ host: '127.0.0.1', port: 0 }, () => health)
  t.after(close)
  const probe = async (path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${address.port}${path}`, { method })
    return `${response.status} ${(await response.text()).trim()}`
  }
  const all = () => Promise.all(['/livez', '/readyz', '/startupz'].map(path => probe(path)))
  deepEqual(await all(), ['200 ok', '503 not registered', '503 not registered'])
  health = { live: [], ready: [], started: [] }
  deepEqual(await all(), ['200 ok', '200 ok', '200 ok'])
  health = { live: ['stuck'], ready: ['late', 'drains'], started: [] }
  deepEqual(await all(), ['503 stuck', '503 late\ndrains', '200 ok'])
  deepEqual(await Promise.all([probe('/nope'), probe('/livez', 'POST')]), [
    '404 not found: use /livez, /readyz or /startupz',
    '405 method not allowed: use GET',
  ])
})

test('reports a blocked event loop while it is blocked, and is live again afterwards', async t => {
  const child = fork(join(import.meta.dirname, 'stuck-worker.testing.ts'))
  t.after(() => child.kill('SIGKILL'))
  const [port] = (await once(child, 'message')) as [number]
  const probe = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    return `${response.status} ${(await response.text()).trim()}`
  }
  equal(await probe('/livez'), '200 ok')
  const unblocked = once(child, 'message')
  const end = join(mkdtempSync(join(tmpdir(), 'oarlock-health-')), 'end')
  t.after(() => rmSync(dirname(end), { recursive: true }))
  child.send(end)
  const stuck = await eventually(
    () => probe('/livez'),
    answer => answer !== '200 ok',
  )
  match(stuck, /^503 the worker's event loop has been blocked for \d+\.\ds$/)
  match(await probe('/readyz'), /^503 drains\nthe worker's event loop has been blocked/)
  equal(await probe('/startupz'), '200 ok')
  writeFileSync(end, '')
  await unblocked
  equal(await probe('/livez'), '200 ok')
})

test('rejects when the address is in use', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const { port } = other.address() as { port: number }
  const failed = await startWorkerHealth({ host: '127.0.0.1', port }, () => ({ live: [], ready: [], started: [] })).catch(error => error)
  match(failed.message, /failed to listen on 127\.0\.0\.1:\d+, the address of the worker's health: .*EADDRINUSE/)
})
