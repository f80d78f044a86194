/**
 * The thread that renews a worker's Lease. Neither an event loop that is busy with an engine's output nor a thread pool that is blocked by
 * a frozen disk can starve it: it reads no file and, with a numeric address, resolves no name. It has its own connections to the API
 * server and to the supervisor, to which it reports each renewal.
 */
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { bootMs } from '../supervisor/clock.ts'
import type { SupervisorMessage } from '../supervisor/supervisor-protocol.ts'
import { type FromHeartbeat, type HeartbeatData, sharedClockSlots, type ToHeartbeat } from './heartbeat-protocol.ts'
import { leaseRenewal } from './lease-renewal.ts'

const { leaseUrl, leaseUid, caCertificate, worker, renewMs, stuckMs, shared } = workerData as HeartbeatData
let { token } = workerData as HeartbeatData
const times = new BigInt64Array(shared)
const stop = new AbortController()
const { Agent: HttpAgent, request: httpRequest } = process.getBuiltinModule('node:http')
const isTls = leaseUrl.startsWith('https:')
const agent = isTls
  ? new HttpsAgent({ keepAlive: true, maxSockets: 1, ca: caCertificate })
  : new HttpAgent({ keepAlive: true, maxSockets: 1 })
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
    const sent = (isTls ? httpsRequest : httpRequest)(leaseUrl, { method: 'PATCH', agent, headers, signal })
    sent.on('error', reject)
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
  // The registration counts as the first renewal, and was a while ago.
  for (let waitMs = Math.max(0, renewMs - (bootMs() - Number(Atomics.load(times, sharedClockSlots.renewedAtMs)))); ; ) {
    await delay(waitMs, undefined, { signal: stop.signal }).catch(() => {})
    if (stop.signal.aborted) return
    const blockedMs = bootMs() - Number(Atomics.load(times, sharedClockSlots.aliveAtMs))
    if (blockedMs > stuckMs) {
      // Let the Lease expire, so that another worker takes over; the supervisor stops the engine.
      waitMs = renewMs
      continue
    }
    const sentAtMs = bootMs()
    try {
      const { status, text } = await renew()
      if (status === 404 || status === 409) {
        post({ kind: 'lost' })
        return
      }
      if (status !== 200) throw new Error(`failed to renew the Lease: ${status} ${text.slice(0, 300)}`)
      Atomics.store(times, sharedClockSlots.renewedAtMs, BigInt(Math.floor(sentAtMs)))
      reportRenewal()
      post({ kind: 'renewed' })
      waitMs = Math.max(0, renewMs - (bootMs() - sentAtMs))
    } catch (error) {
      if (stop.signal.aborted) return
      post({ kind: 'error', message: (error as Error).message })
      waitMs = renewMs / 4
    }
  }
}

void renewForever()
