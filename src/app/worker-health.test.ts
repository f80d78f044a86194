import { deepEqual, equal, match } from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../test/support/eventually.ts'
import type { WorkerHealth } from '../execution/worker/index.ts'
import { startWorkerHealth } from './worker-health.ts'

test('each endpoint says its own truth, with the reason', async t => {
  let health: WorkerHealth = { live: [], ready: ['not registered'], started: ['not registered'] }
  const { address, close } = await startWorkerHealth({ host: '127.0.0.1', port: 0 }, () => health)
  t.after(close)
  const ask = async (path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${address.port}${path}`, { method })
    return `${response.status} ${(await response.text()).trim()}`
  }
  const all = () => Promise.all(['/livez', '/readyz', '/startupz'].map(path => ask(path)))
  deepEqual(await all(), ['200 ok', '503 not registered', '503 not registered'])
  health = { live: [], ready: [], started: [] }
  deepEqual(await all(), ['200 ok', '200 ok', '200 ok'])
  health = { live: ['stuck'], ready: ['late', 'drains'], started: [] }
  deepEqual(await all(), ['503 stuck', '503 late\ndrains', '200 ok'])
  deepEqual(await Promise.all([ask('/nope'), ask('/livez', 'POST')]), ['404 there is /livez, /readyz and /startupz', '405 use GET'])
})

test('an event loop that stands still is told while it does, and alive again when it goes on', async t => {
  const child = fork(join(import.meta.dirname, 'stuck-worker.testing.ts'))
  t.after(() => child.kill('SIGKILL'))
  const [port] = (await once(child, 'message')) as [number]
  const ask = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    return `${response.status} ${(await response.text()).trim()}`
  }
  equal(await ask('/livez'), '200 ok')
  const turnsAgain = once(child, 'message')
  const end = join(mkdtempSync(join(tmpdir(), 'oarlock-health-')), 'end')
  t.after(() => rmSync(dirname(end), { recursive: true }))
  child.send(end)
  const stuck = await eventually(
    () => ask('/livez'),
    answer => answer !== '200 ok',
  )
  match(stuck, /^503 the worker's event loop has stood still for \d+\.\d s$/)
  match(await ask('/readyz'), /^503 drains\nthe worker's event loop has stood still/)
  equal(await ask('/startupz'), '200 ok')
  writeFileSync(end, '')
  await turnsAgain
  equal(await ask('/livez'), '200 ok')
})

test('an address that is taken is said', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const { port } = other.address() as { port: number }
  const failed = await startWorkerHealth({ host: '127.0.0.1', port }, () => ({ live: [], ready: [], started: [] })).catch(error => error)
  match(failed.message, /the address of the worker's health, cannot be listened on: .*EADDRINUSE/)
})
