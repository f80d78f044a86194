import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerHealth } from '../worker/index.ts'
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
  deepEqual(await Promise.all([ask('/nope'), ask('/livez', 'POST')]), [
    '404 there is /livez, /readyz and /startupz',
    '405 ok'.replace('ok', 'stuck'),
  ])
})
