/**
 * Malformed and valid responses of an API server to the thread that renews a worker's Lease. It must continue, count no renewal that the server
 * has not confirmed (invariant 2), and give up its Lease only when that is gone.
 */
import { equal } from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import type { Worker as Thread } from 'node:worker_threads'
import fc from 'fast-check'
import { type FromHeartbeat, type HeartbeatData, sharedClockSlots } from '../../src/execution/worker/lease/heartbeat-protocol.ts'
import { bootMs } from '../../src/execution/worker/supervisor/clock.ts'
import { startThread } from '../../src/kubernetes/util/index.ts'
import { eventually } from '../support/eventually.ts'
import { bytes, mostly, oneOf } from './endpoint-request.ts'

/** The full run has 100,000: OARLOCK_FUZZ_REQUESTS=100000 node --test test/reliability/fuzz-heartbeat.test.ts */
const total = Number(process.env.OARLOCK_FUZZ_REQUESTS ?? 120)
const seed = Number(process.env.OARLOCK_TEST_SEED ?? 20_261)
const threads = 4
/** Also the time for a response, which must not be too short on a busy machine. */
const renewMs = total >= 10_000 ? 20 : 100
const token = 'secret-token-of-the-worker'

/** `renews`: a complete response with status 200. `isGone`: the Lease was deleted or replaced. `end`: what the server does then. */
type Answer = { text: string; renews: boolean; isGone?: boolean; end: 'keep' | 'close' | 'reset' }

const response = (status: number, body: string, headers: readonly string[] = []): string =>
  [`HTTP/1.1 ${status} Some reason`, `Content-Length: ${body.length}`, ...headers, '', body].join('\r\n')
const chunked = (body: string) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
const confirmation: Answer = { text: response(200, '{}'), renews: true, end: 'keep' }
const bodies = oneOf(
  ...['', '{}', 'null', '{"kind":"Lease"}', '\0\xff', '\u001b[2J', '<html>', '{"a":'.repeat(20_000), 'x'.repeat(300_000)],
)
const headers = mostly<readonly string[]>(
  [[], [], ['Content-Type: application/json']],
  [
    ...[['Connection: close'], ['Content-Encoding: gzip'], ['Location: http://127.0.0.1:1/'], ['Retry-After: 99999999']],
    ...[['X: y'.repeat(100)], [`X: ${'y'.repeat(60_000)}`], Array<string>(3_000).fill('A: b'), ['Transfer-Encoding: chunked']],
  ],
)
const statuses = [201, 202, 204, 206, 299, 300, 301, 304, 400, 401, 403, 405, 408, 410, 412, 422, 429, 500, 502, 503, 504, 599, 600, 999]
const ends = mostly<Answer['end']>(['keep'], ['close', 'reset'])

const valid = fc.record({ body: bodies, end: ends }).chain(({ body, end }) =>
  oneOf<Answer[]>(
    { text: response(200, body), renews: true, end },
    { text: chunked(body || '{}'), renews: true, end },
    {
      text: `HTTP/1.1 100 Continue\r\n\r\n${'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'.repeat(20)}${response(200, body)}`,
      renews: true,
      end,
    },
    { text: `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${body}`, renews: true, end: 'close' },
  ),
)
const refused = fc
  .record({ status: oneOf(...statuses), body: bodies, headers, end: ends })
  .map(({ status, body, headers, end }): Answer => ({ text: response(status, body, headers), renews: false, end }))
const gone = oneOf<Answer[]>(
  { text: response(404, '{}'), renews: false, isGone: true, end: 'keep' },
  { text: response(409, ''), renews: false, isGone: true, end: 'keep' },
)
const malformed = fc.oneof(
  bytes(300).map((noise): Answer => ({ text: noise, renews: false, end: 'close' })),
  bytes(20).map((noise): Answer => ({ text: `HTTP/1.1 500 ${noise}`, renews: false, end: 'close' })),
  oneOf<Answer[]>(
    { text: '', renews: false, end: 'close' },
    { text: '', renews: false, end: 'reset' },
    // No response: the thread waits for `renewMs`.
    { text: '', renews: false, end: 'keep' },
    { text: 'HTTP/1.1 200 OK\r\n', renews: false, end: 'keep' },
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{', renews: false, end: 'close' },
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{', renews: false, end: 'reset' },
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{', renews: false, end: 'keep' },
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}', renews: false, end: 'keep' },
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}', renews: false, end: 'keep' },
    { text: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', renews: false, end: 'keep' },
    { text: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab', renews: false, end: 'close' },
    { text: 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n', renews: false, end: 'keep' },
    { text: 'HTTP/1.1 101 Switching Protocols\r\n\r\n', renews: false, end: 'close' },
    { text: 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(500), renews: false, end: 'keep' },
    { text: 'HTTP/2.0 200 OK\r\n\r\n', renews: false, end: 'keep' },
    { text: 'ICY 200 OK\r\n\r\n', renews: false, end: 'close' },
    { text: `HTTP/1.1 500 ${'x'.repeat(100_000)}`, renews: false, end: 'keep' },
    // The second one responds to nothing.
    { text: response(500, '') + response(200, '{}'), renews: false, end: 'keep' },
  ),
)
const answers = fc.oneof(
  { weight: 60, arbitrary: valid },
  { weight: 80, arbitrary: refused },
  { weight: 80, arbitrary: malformed },
  { weight: 1, arbitrary: gone },
)

test(`${total} responses: the heartbeat continues, and counts no renewal that was not confirmed`, { timeout: 3_600_000 }, async t => {
  let sent = 0
  const attack = async (index: number) => {
    for (let part = 0; sent < total; part++) {
      const batch = fc.sample(answers, { seed: seed + index + threads * part, numRuns: 500 })
      while (batch.length > 0 && sent < total) sent += await attackThread(t, batch, () => total - sent)
    }
  }
  await Promise.all(Array.from({ length: threads }, (_, index) => attack(index)))
})

/** Sends responses until the Lease of a thread is gone. Returns how many. */
async function attackThread(t: TestContext, batch: Answer[], remaining: () => number): Promise<number> {
  let sent = 0
  let last: Answer | undefined
  let confirmedAtMs = Math.floor(bootMs())
  let isFuzzing = true
  const failures: string[] = []
  const fail = (what: string) => failures.push(`seed ${seed}: ${what} after ${JSON.stringify(last).slice(0, 2_000)}`)
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    let received = ''
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text
      // The body of a renewal has no line break.
      if (!/\r\n\r\n\{.*\}\}$/.test(received)) return
      received = ''
      const next = isFuzzing ? batch.pop() : undefined
      last = next ?? confirmation
      if (next) sent++
      if (batch.length === 0 || remaining() - sent <= 0) isFuzzing = false
      if (last.renews) confirmedAtMs = bootMs()
      socket.write(Buffer.from(last.text, 'latin1'))
      if (last.end === 'close') socket.end()
      if (last.end === 'reset') socket.resetAndDestroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  const shared = new SharedArrayBuffer(16)
  const times = new BigInt64Array(shared)
  Atomics.store(times, sharedClockSlots.renewedAtMs, BigInt(confirmedAtMs))
  Atomics.store(times, sharedClockSlots.aliveAtMs, BigInt(confirmedAtMs))
  const workerData: HeartbeatData = {
    leaseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/lease`,
    ...{ socketPath: undefined, caCertificate: undefined, leaseUid: 'uid', token, renewMs, stuckMs: 3_600_000, shared },
    worker: { id: 'w', pid: process.pid, startTime: '1' },
  }
  const thread: Thread = startThread('execution/worker/lease/heartbeat-thread', { workerData })
  let isLost = false
  let renewals = 0
  thread.on('error', error => fail(`the thread failed: ${(error as Error).stack}`))
  thread.on('message', (message: FromHeartbeat) => {
    if (message.kind === 'renewed') renewals++
    const renewedAtMs = Number(Atomics.load(times, sharedClockSlots.renewedAtMs))
    // It counts from before the request was sent.
    if (renewedAtMs > confirmedAtMs) fail(`renewed at ${renewedAtMs}, which was last confirmed at ${confirmedAtMs}`)
    if (message.kind === 'error' && (message.message.length > 500 || message.message.includes(token))) fail(`error ${message.message}`)
    if (message.kind === 'lost') {
      isLost = true
      if (!last?.isGone) fail('the Lease was given up')
    }
  })
  const stop = async () => {
    await thread.terminate()
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  t.after(stop)
  const isOver = () => isLost || !isFuzzing || failures.length > 0
  while (!isOver()) {
    const before = sent
    await eventually(() => sent > before || isOver(), `a request after ${JSON.stringify(last)?.slice(0, 2_000)}`)
  }
  if (!isLost && failures.length === 0) {
    const renewed = renewals
    const what = `a renewal after the responses, of which the last was ${JSON.stringify(last)?.slice(0, 2_000)}`
    // The last response may have been one that ends the Lease, which the thread reports after this.
    await eventually(() => isLost || renewals > renewed || failures.length > 0, what, 60_000)
  }
  await stop()
  equal(failures.join('\n'), '')
  return sent
}
