/**
 * A client that opens many connections to one address and keeps them open, in a process of its own: its files are not those of the test.
 * As a program it reads a {@link FloodOrder} and prints its counts every 100 ms until stdin ends.
 */
import { equal, ok } from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { get as getHttp } from 'node:http'
import { get as getHttps } from 'node:https'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { connect as connectTls } from 'node:tls'
import { eventually } from './eventually.ts'

export type FloodOrder = {
  /** HOST:PORT, or the path of a Unix socket. */
  target: string
  tls: boolean
  connections: number
  /** Sent on each connection; empty sends nothing. */
  send: string
  /** Connections that are being established at a time. Default 8. */
  concurrent?: number
  /** Opens another connection for each that is closed. Default false. */
  reopens?: boolean
}

export type FloodCounts = {
  /** Connections that were established, or closed before that, so far. */
  attempted: number
  /** Now open. */
  open: number
  /** Responses by status. */
  responses: Readonly<Record<string, number>>
}

export type Flood = {
  counts(): FloodCounts
  /** Waits until each of its connections was established or closed. */
  attempted(): Promise<void>
  stop(): Promise<void>
}

export async function startFlood(order: FloodOrder): Promise<Flood> {
  const child: ChildProcess = spawn(process.execPath, [import.meta.filename, JSON.stringify(order)], { stdio: ['pipe', 'pipe', 'inherit'] })
  let counts: FloodCounts = { attempted: 0, open: 0, responses: {} }
  createInterface({ input: child.stdout! }).on('line', line => {
    counts = JSON.parse(line) as FloodCounts
  })
  await once(child, 'spawn')
  return {
    counts: () => counts,
    attempted: async () => void (await eventually(() => counts.attempted >= order.connections, 'the connections to be attempted', 60_000)),
    stop: async () => {
      const exited = once(child, 'exit')
      child.stdin?.end()
      if (child.exitCode === null && child.signalCode === null) await exited
    },
  }
}

/** The status and the time of a response on a new connection; undefined if the connection was closed. */
export async function respond(url: string, headers: Record<string, string> = {}): Promise<{ status: number; ms: number } | undefined> {
  const startMs = performance.now()
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  const get = url.startsWith('https:') ? getHttps : getHttp
  get(url, { rejectUnauthorized: false, headers, agent: false }, response => resolve(response.resume().statusCode)).on('error', () =>
    resolve(undefined),
  )
  const status = await promise
  return status === undefined ? undefined : { status, ms: performance.now() - startMs }
}

/** Checks that health is reported within a second on new connections, which may be closed while others arrive: then on the next one. */
export async function checkHealth(url: string): Promise<void> {
  const times: number[] = []
  for (let i = 0; i < 11; i++) {
    const { status, ms } = await eventually(() => respond(url), `a response to ${url}`)
    equal(status, 200)
    times.push(ms)
  }
  // The median: the machine is shared with the clients of the flood, and with other tests.
  times.sort((one, other) => one - other)
  ok((times[5] ?? 0) < 1_000, `${url} responded after ${times.map(Math.round)} ms`)
}

export const getRequest = (path: string, token?: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${token === undefined ? '' : `Authorization: Bearer ${token}\r\n`}\r\n`

async function flood({ target, tls, connections, send, concurrent = 8, reopens = false }: FloodOrder): Promise<void> {
  const [host, port] = target.split(':')
  const where = target.startsWith('/') ? { path: target } : { host: host ?? '', port: Number(port) }
  const counts = { attempted: 0, open: 0, responses: {} as Record<string, number> }
  let pending = 0
  const openOne = (): void => {
    const socket: Socket = tls ? connectTls({ ...where, rejectUnauthorized: false }) : connect(where)
    let isOpen = false
    pending++
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      isOpen = true
      pending--
      counts.attempted++
      counts.open++
      if (send !== '') socket.write(send)
    })
    socket.on('data', chunk => {
      const [, status] = /^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1')) ?? []
      if (status !== undefined) counts.responses[status] = (counts.responses[status] ?? 0) + 1
    })
    socket.on('error', () => {})
    socket.once('close', () => {
      if (isOpen) counts.open--
      else {
        counts.attempted++
        pending--
      }
      if (reopens) setTimeout(openOne, 500)
    })
  }
  setInterval(() => process.stdout.write(`${JSON.stringify(counts)}\n`), 100)
  process.stdin.resume().once('end', () => process.exit())
  for (let started = 0; started < connections; started++) {
    while (pending >= concurrent) await new Promise(resolve => setTimeout(resolve, 1))
    openOne()
  }
}

if (import.meta.main) await flood(JSON.parse(process.argv[2] ?? '') as FloodOrder)
