/**
 * The thread that serves a worker's health: it answers also while the worker's own event loop stands still, and then says so. Each
 * answer is the worker's own of that moment; where it gives none in time, its last one and for how long it has stood still.
 */
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import type { WorkerHealth } from '../execution/worker/index.ts'
import type { FromHealth, HealthData, ToHealth } from './worker-health.ts'

/** A probe waits for no longer: kubelets' give up after a second unless they are told otherwise. */
const answerWithinMs = 700

const { createServer } = process.getBuiltinModule('node:http')
const { host, port, stuckAfterMs, turnedAtMs } = workerData as HealthData
const turned = new BigInt64Array(turnedAtMs)
const waiting = new Map<number, (health: WorkerHealth) => void>()
let last: WorkerHealth = { live: [], ready: ['the worker has not begun yet'], started: ['the worker has not begun yet'] }
let asked = 0

const tell = (message: FromHealth): void => parentPort?.postMessage(message)

parentPort?.on('message', ({ id, health }: ToHealth) => {
  last = health
  waiting.get(id)?.(health)
})

async function healthNow(): Promise<WorkerHealth> {
  const id = ++asked
  const answered = Promise.withResolvers<WorkerHealth>()
  waiting.set(id, answered.resolve)
  const timer = setTimeout(() => answered.resolve(standingStill()), answerWithinMs)
  tell({ kind: 'ask', id })
  try {
    return await answered.promise
  } finally {
    clearTimeout(timer)
    waiting.delete(id)
  }
}

function standingStill(): WorkerHealth {
  const forMs = Number(process.hrtime.bigint() / 1_000_000n - Atomics.load(turned, 0))
  const reason = `the worker's event loop has stood still for ${(forMs / 1_000).toFixed(1)} s`
  return { live: forMs >= stuckAfterMs ? [...last.live, reason] : last.live, ready: [...last.ready, reason], started: last.started }
}

function answer(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' }).end(`${text}\n`)
}

const server = createServer(async (request, response) => {
  response.on('error', () => {})
  if (request.method !== 'GET' && request.method !== 'HEAD') return answer(response, 405, 'use GET')
  const { live, ready, started } = await healthNow()
  const reasons = { '/livez': live, '/healthz': live, '/readyz': ready, '/startupz': started }[(request.url ?? '').split('?')[0] ?? '']
  if (reasons === undefined) return answer(response, 404, 'there is /livez, /readyz and /startupz')
  answer(response, reasons.length === 0 ? 200 : 503, reasons.join('\n') || 'ok')
})
server.headersTimeout = 10_000
server.requestTimeout = 10_000
server.maxConnections = 64
server.on('clientError', (_error, socket) => socket.destroy())
server.once('error', error => tell({ kind: 'failed', message: error.message }))
server.listen(port, host, () => tell({ kind: 'listening', port: (server.address() as AddressInfo).port }))
