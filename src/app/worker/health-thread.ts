/**
 * The thread that serves a worker's health. Each response is the worker's own of that moment. When the worker does not respond in time,
 * because its event loop is blocked, the response is its last one and for how long the loop has been blocked.
 */
import type { AddressInfo } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import type { WorkerHealth } from '../../execution/worker/index.ts'
import { ConnectionLimiter, respondToHealthCheck, respondToRequests, ThreadRequests } from '../../kubernetes/util/index.ts'
import type { HealthRequest, HealthThreadData, ListenResponse } from './worker-health.ts'

/** A kubelet's probe gives up after one second unless it is configured otherwise. */
const responseTimeoutMs = 700

const { createServer } = process.getBuiltinModule('node:http')
const { host, port, stuckAfterMs, lastTickMs } = workerData as HealthThreadData
const lastTick = new BigInt64Array(lastTickMs)
const worker = new ThreadRequests<HealthRequest, WorkerHealth>(parentPort!)
let last: WorkerHealth = { live: [], ready: ['the worker has not started yet'], started: ['the worker has not started yet'] }

async function currentHealth(): Promise<WorkerHealth> {
  const timeout = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => timeout.resolve(undefined), responseTimeoutMs)
  const health = await Promise.race([worker.send('health'), timeout.promise])
  clearTimeout(timer)
  if (health === undefined) return blockedHealth()
  last = health
  return health
}

function blockedHealth(): WorkerHealth {
  const blockedMs = Number(process.hrtime.bigint() / 1_000_000n - Atomics.load(lastTick, 0))
  // Not `formatDuration`: kubernetes/object would be loaded once more in this thread, for one number.
  const reason = `the worker's event loop has been blocked for ${(blockedMs / 1_000).toFixed(1)}s`
  return { live: blockedMs >= stuckAfterMs ? [...last.live, reason] : last.live, ready: [...last.ready, reason], started: last.started }
}

const server = createServer(async (request, response) => {
  response.on('error', () => {})
  const { live, ready, started } = await currentHealth()
  if (respondToHealthCheck({ livez: () => live, readyz: () => ready, startupz: () => started }, request, response)) return
  response.writeHead(404, { 'Content-Type': 'text/plain; charset=utf-8' }).end('not found: use /livez, /readyz or /startupz\n')
})
server.headersTimeout = 10_000
server.requestTimeout = 10_000
new ConnectionLimiter({ unauthenticated: 64, authenticated: 0, perUser: 0 }).limit(server)
// Such as too many open files while connections are accepted: without a listener it would end the thread.
server.on('error', () => {})
server.on('clientError', (_error, socket) => socket.destroy())

respondToRequests<'listen', ListenResponse>(
  parentPort!,
  () =>
    new Promise(resolve => {
      server.once('error', error => resolve({ error: error.message }))
      server.listen(port, host, () => resolve({ port: (server.address() as AddressInfo).port }))
    }),
)
