/**
 * The thread that renews a worker's Lease. Neither an event loop that is busy with an engine's output nor a thread pool that is blocked by
 * a frozen disk can starve it: it reads no file and, with a numeric address, resolves no name. It has its own connections to the API
 * server and to the supervisor, to which it reports each renewal.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { bootMs } from '../supervisor/clock.ts'
import type { SupervisorMessage } from '../supervisor/supervisor-protocol.ts'
import { decideRenewal, type RenewalEvent } from './decide-renewal.ts'
import { type FromHeartbeat, type HeartbeatData, sharedClockSlots, type ToHeartbeat } from './heartbeat-protocol.ts'
import { leaseRenewal } from './lease-renewal.ts'

const { leaseUrl, socketPath, leaseUid, caCertificate, worker, renewMs, stuckMs, shared } = workerData as HeartbeatData
let { token } = workerData as HeartbeatData
const times = new BigInt64Array(shared)
const stop = new AbortController()
const { Agent, request } = process.getBuiltinModule(leaseUrl.startsWith('https:') ? 'node:https' : 'node:http')
const agent = new Agent({
  keepAlive: true,
  maxSockets: 1,
  ca: caCertificate,
  ...(socketPath !== undefined && { socketPath }),
})
let supervisor: Socket | undefined

const post = (message: FromHeartbeat): void => parentPort?.postMessage(message)

parentPort?.on('message', (message: ToHeartbeat) => {
  if (message.kind === 'stop') {
    stop.abort()
    supervisor?.destroy()
    agent.destroy()
    parentPort?.close()
  } else if (message.kind === 'token') token = message.token
  else {
    supervisor?.destroy()
    supervisor = connect(message.path)
    supervisor.on('error', () => {})
    supervisor.unref()
    reportRenewal()
  }
})

function reportRenewal(): void {
  const message: SupervisorMessage = { kind: 'renewed', worker, atMs: Number(Atomics.load(times, sharedClockSlots.renewedAtMs)) }
  supervisor?.write(`${JSON.stringify(message)}\n`)
}

/** Sends one renewal; resolves with the response, rejects if there is none. */
function renew(): Promise<{ status: number; text: string }> {
  const body = JSON.stringify(leaseRenewal(leaseUid, Date.now()))
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/merge-patch+json',
    'content-length': Buffer.byteLength(body),
    'user-agent': 'oarlock-worker-heartbeat',
  }
  return new Promise((resolve, reject) => {
    // Bounds the whole request; `stop` ends it immediately.
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(renewMs)])
    const sent = request(leaseUrl, { method: 'PATCH', agent, headers, signal })
    sent.on('error', reject)
    // Without a listener neither this event nor the timeout would be an error, and the Lease would never be renewed again.
    sent.on('upgrade', ({ statusCode }, socket) => {
      socket.destroy()
      reject(new Error(`failed to renew the Lease: ${statusCode} Switching Protocols`))
    })
    sent.on('response', response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        if (text.length < 2_000) text += chunk
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    sent.end(body)
  })
}

async function renewForever(): Promise<void> {
  let event: RenewalEvent = { kind: 'registered', sentAtMs: Number(Atomics.load(times, sharedClockSlots.renewedAtMs)) }
  for (;;) {
    const { renewedAtMs, error, isRejected = false, next } = decideRenewal(event, bootMs(), { renewMs, stuckMs })
    if (renewedAtMs !== undefined) {
      Atomics.store(times, sharedClockSlots.renewedAtMs, BigInt(Math.floor(renewedAtMs)))
      reportRenewal()
      post({ kind: 'renewed' })
    }
    if (error !== undefined) post({ kind: 'error', message: error, isRejected })
    if (next.kind === 'lost') {
      post({ kind: 'lost' })
      return
    }
    if (next.kind === 'wait') {
      await delay(next.ms, undefined, { signal: stop.signal }).catch(() => {})
      event = { kind: 'due', aliveAtMs: Number(Atomics.load(times, sharedClockSlots.aliveAtMs)) }
    } else {
      const { sentAtMs } = next
      event = await renew().then(
        response => ({ kind: 'answered', sentAtMs, ...response }),
        (failure: Error) => ({ kind: 'failed', message: failure.message }),
      )
    }
    if (stop.signal.aborted) return
  }
}

void renewForever()
