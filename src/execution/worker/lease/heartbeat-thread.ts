/**
 * The thread that renews a worker's Lease: no event loop, however busy with an engine's output, and no thread pool full of a disk that
 * stands still can starve it (it asks for no file and, with a numeric address, for no name). It has its own connection to the API, and
 * one to the supervisor, which hears of each renewal from here.
 */
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { bootMs } from '../supervisor/clock.ts'
import type { SupervisorMessage } from '../supervisor/supervisor-protocol.ts'
import { type FromHeartbeat, type HeartbeatData, sharedIndex, type ToHeartbeat } from './heartbeat-protocol.ts'
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

const tell = (message: FromHeartbeat): void => parentPort?.postMessage(message)

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
  const message: SupervisorMessage = { kind: 'renewed', worker, atMs: Number(Atomics.load(times, sharedIndex.renewedAtMs)) }
  supervisor?.write(`${JSON.stringify(message)}\n`)
}

/** The status of the answer. Rejects with what went wrong on the way. */
function renew(): Promise<{ status: number; text: string }> {
  const body = JSON.stringify(leaseRenewal(leaseUid, Date.now()))
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/merge-patch+json',
    'content-length': Buffer.byteLength(body),
    'user-agent': 'oarlock-worker-heartbeat',
  }
  return new Promise((resolve, reject) => {
    // A bound on every silence, and one on the whole.
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

async function beat(): Promise<void> {
  // Since the registration, which was a while ago.
  for (let waitMs = Math.max(0, renewMs - (bootMs() - Number(Atomics.load(times, sharedIndex.renewedAtMs)))); ; ) {
    await delay(waitMs, undefined, { signal: stop.signal }).catch(() => {})
    if (stop.signal.aborted) return
    const standsStillMs = bootMs() - Number(Atomics.load(times, sharedIndex.aliveAtMs))
    if (standsStillMs > stuckMs) {
      // Better another worker does it than that a Lease is kept for one that does nothing: the supervisor ends the engine.
      waitMs = renewMs
      continue
    }
    const sentAtMs = bootMs()
    try {
      const { status, text } = await renew()
      if (status === 404 || status === 409) {
        tell({ kind: 'lost' })
        return
      }
      if (status !== 200) throw new Error(`the Lease could not be renewed: ${status} ${text.slice(0, 300)}`)
      Atomics.store(times, sharedIndex.renewedAtMs, BigInt(Math.floor(sentAtMs)))
      reportRenewal()
      tell({ kind: 'renewed' })
      waitMs = Math.max(0, renewMs - (bootMs() - sentAtMs))
    } catch (error) {
      if (stop.signal.aborted) return
      tell({ kind: 'error', message: (error as Error).message })
      waitMs = renewMs / 4
    }
  }
}

void beat()
