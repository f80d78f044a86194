import { deepStrictEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import {
  createLogHandler,
  LogClient,
  type LogContext,
  type LogHandlerOptions,
  type LogLimits,
  type LogStore,
  openLogStore,
} from './index.ts'

const key = { namespace: 'apps', run: 'net-1' }
type Setup = { store: LogStore; url: string; port: number; server: Server; setDown(down: boolean): void; requests: () => number }

async function withServer(
  work: (setup: Setup) => Promise<void>,
  options: { limits?: Partial<LogLimits>; handler?: Partial<LogHandlerOptions>; context?: LogContext } = {},
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-log-http-'))
  const store = openLogStore({ directory, limits: options.limits })
  let down = false
  let requests = 0
  const errors: unknown[] = []
  const handler = createLogHandler({
    store,
    authorize: async ({ run, verb }) =>
      run === 'hidden' ? { allowed: false, code: 403, message: `may not ${verb} it` } : { allowed: true },
    onError: error => errors.push(error),
    ...options.handler,
  })
  const server = createServer((req, res) => {
    requests++
    if (down) req.socket.destroy()
    else void handler(req, res, options.context ?? { user: undefined })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  try {
    await work({ store, port, server, url: `http://127.0.0.1:${port}`, setDown: value => (down = value), requests: () => requests })
    deepStrictEqual(errors, [])
  } finally {
    server.closeAllConnections()
    server.close()
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

const post = async (url: string, body?: string) => {
  const response = await fetch(url, { method: 'POST', body })
  return [response.status, await response.json()]
}
const textOf = async (store: LogStore) => (await store.read(key)).bytes.toString()

test('appends, queries the offset, ends and reads over HTTP', () =>
  withServer(async ({ url }) => {
    const log = `${url}/logs/apps/net-1`
    deepStrictEqual(await post(log), [200, { offset: 0 }])
    deepStrictEqual(await post(`${log}?offset=0`, 'one\n'), [200, { offset: 4 }])
    deepStrictEqual(await post(`${log}?offset=0`, 'one\n'), [200, { offset: 4 }])
    const gap = { error: { code: 'Gap', message: 'offset must be at most 4, got 9: the bytes in between are missing' }, expected: 4 }
    deepStrictEqual(await post(`${log}?offset=9`, 'x'), [409, gap])
    deepStrictEqual(await post(`${log}?end=1`), [200, { ended: true }])
    deepStrictEqual(await post(`${log}?offset=4`, 'x'), [409, { error: { code: 'Ended', message: 'the log has ended' } }])
    const response = await fetch(`${log}?tail=1`)
    equal(await response.text(), 'one\n')
    deepStrictEqual(
      ['oarlock-offset', 'oarlock-next-offset', 'oarlock-ended'].map(name => response.headers.get(name)),
      ['0', '4', 'true'],
    )
  }))

for (const { name, method = 'POST', path, body, want } of [
  { name: 'an append without an offset', path: '/logs/apps/net-1', body: 'x', want: 400 },
  { name: 'a negative offset', path: '/logs/apps/net-1?offset=-1', body: 'x', want: 400 },
  { name: 'a body above the limit', path: '/logs/apps/net-1?offset=0', body: 'x'.repeat(2_000), want: 413 },
  { name: 'a path without a run', path: '/logs/apps', body: 'x', want: 404 },
  { name: 'a path traversal', path: '/logs/apps/..%2f..%2fetc', body: 'x', want: 400 },
  { name: 'invalid percent-encoding', path: '/logs/apps/%zz', body: 'x', want: 400 },
  { name: 'an invalid name', path: '/logs/apps/UPPER?offset=0', body: 'x', want: 400 },
  { name: 'a tail that is not a number', method: 'GET', path: '/logs/apps/net-1?tail=many', want: 400 },
  { name: 'an unsupported method', method: 'PUT', path: '/logs/apps/net-1', body: 'x', want: 405 },
  { name: 'a log without access', method: 'GET', path: '/logs/apps/hidden', want: 403 },
]) {
  test(`responds with 4xx to ${name}`, () =>
    withServer(
      async ({ url }) => {
        const response = await fetch(url + path, { method, body })
        equal(response.status, want)
        const { error } = (await response.json()) as { error: { code: string; message: string } }
        ok(error.code && error.message)
      },
      { handler: { maxBodyBytes: 1_000 } },
    ))
}

test('a Run that does not exist and has no log is not found, also by followers; the log that a deleted Run left is read', () =>
  withServer(
    async ({ store, url }) => {
      for (const query of ['', '?follow=1']) {
        const response = await fetch(`${url}/logs/apps/missing${query}`)
        equal(response.status, 404)
        match(await response.text(), /Run apps\/missing does not exist/)
      }
      await store.append(key, 0, Buffer.from('kept\n'))
      equal(await (await fetch(`${url}/logs/apps/${key.run}`)).text(), 'kept\n')
    },
    { handler: { authorize: async () => ({ allowed: true, isRunMissing: true }) } },
  ))

test('rejects an invalid name before the request is authorized, which the API server could not decide', () =>
  withServer(
    async ({ url }) => {
      for (const path of ['/logs/..%2f..%2fkeys/state.key', '/logs/apps/..%2fstate.key']) equal((await fetch(url + path)).status, 400)
      equal((await fetch(`${url}/logs/apps/net-1`)).status, 503)
    },
    { handler: { authorize: async () => ({ allowed: false, code: 503, message: 'retry later' }) } },
  ))

test('stores nothing of an idle or incomplete body', () =>
  withServer(
    async ({ port, store, server }) => {
      for (const end of [false, true]) {
        const socket = connect(port, '127.0.0.1')
        if (end) server.once('request', () => socket.destroy())
        socket.on('error', () => undefined)
        socket.write('POST /logs/apps/net-1?offset=0 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf')
        const response = await new Promise<string>(resolve => {
          let text = ''
          socket.on('data', bytes => (text += bytes.toString()))
          socket.on('close', () => resolve(text))
        })
        if (!end) match(response, /^HTTP\/1.1 408 /)
      }
      equal(await textOf(store), '')
    },
    { handler: { idleMs: 100 } },
  ))

test('a follower receives each append immediately and ends with the log', () =>
  withServer(async ({ store, url }) => {
    await store.append(key, 0, Buffer.from('one\n'))
    const response = await fetch(`${url}/logs/apps/net-1?follow=1`)
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    equal((await reader.read()).value, 'one\n')
    for (let i = 0; i < 5; i++) {
      await store.append(key, 4 + 2 * i, Buffer.from(`${i}\n`))
      equal((await reader.read()).value, `${i}\n`)
    }
    await store.end(key)
    equal((await reader.read()).done, true)
  }))

for (const refusal of ['credential', 'permission'] as const) {
  test(`a follower whose ${refusal} was revoked is disconnected, and not while that is unknown`, () => {
    let state: 'valid' | 'unknown' | 'revoked' = 'valid'
    let checks = 0
    const handler: Partial<LogHandlerOptions> = {
      revalidateMs: 10,
      authorize: async ({ user }) => {
        checks++
        if (refusal === 'permission' && state === 'unknown') return { allowed: false, code: 503, message: 'undecided' }
        if (user && !(refusal === 'permission' && state === 'revoked')) return { allowed: true }
        return { allowed: false, code: user ? 403 : 401, message: 'revoked' }
      },
    }
    const reauthenticate = async () => {
      if (refusal === 'credential' && state === 'unknown') {
        checks++
        throw new Error('unreachable')
      }
      return refusal === 'credential' && state === 'revoked' ? undefined : { name: 'ada', groups: [] }
    }
    return withServer(
      async ({ store, url }) => {
        await store.append(key, 0, Buffer.from('one\n'))
        const response = await fetch(`${url}/logs/apps/net-1?follow=1`)
        const reader = response.body!.getReader()
        await reader.read()
        state = 'unknown'
        const before = checks
        await eventually(() => checks > before + 2, 'further checks')
        await store.append(key, 4, Buffer.from('two\n'))
        equal(Buffer.from((await reader.read()).value!).toString(), 'two\n')
        state = 'revoked'
        await rejects(reader.read())
        await eventually(async () => (await store.stats()).followers === 0, 'the follower to end')
      },
      { handler, context: { user: { name: 'ada', groups: [] }, reauthenticate } },
    )
  })
}

test('a slow follower needs no memory, does not delay others, and is disconnected', () =>
  withServer(
    async ({ store, url }) => {
      const slow = await new Promise<IncomingMessage>((resolve, reject) => {
        request(`${url}/logs/apps/net-1?follow=1`, resolve).once('error', reject).end()
      })
      slow.on('error', () => undefined)
      slow.pause()
      const cutOff = new Promise<void>(resolve => slow.once('close', resolve))
      const chunk = Buffer.from(`${'x'.repeat(1_023)}\n`.repeat(512))
      for (let i = 0; i < 16; i++) await store.append(key, i * chunk.byteLength, chunk)
      const fast = await fetch(`${url}/logs/apps/net-1`)
      equal((await fast.arrayBuffer()).byteLength, 16 * chunk.byteLength)
      await eventually(async () => (await store.stats()).followers === 0, 'the slow follower to be disconnected')
      slow.resume()
      await cutOff
      equal(slow.complete, false)
    },
    { handler: { idleMs: 1_500 } },
  ))

test('limits the number of followers (invariant 10)', () =>
  withServer(
    async ({ url }) => {
      const first = await fetch(`${url}/logs/apps/net-1?follow=1`)
      equal((await fetch(`${url}/logs/apps/net-1?follow=1`)).status, 429)
      await first.body?.cancel()
      await eventually(async () => (await fetch(`${url}/logs/apps/net-1?follow=1`)).status === 200, 'another follower to be accepted')
    },
    { handler: { maxFollowers: 1 } },
  ))

test('the followers of one user are at most a quarter: others can follow', () => {
  const context: LogContext = { user: undefined }
  return withServer(
    async ({ url }) => {
      // A response that is garbage collected ends its request.
      const responses: Response[] = []
      const follow = async (name: string) => {
        context.user = { name, groups: [] }
        const response = await fetch(`${url}/logs/apps/net-1?follow=1`)
        responses.push(response)
        return response.status
      }
      deepStrictEqual([await follow('ada'), await follow('ada'), await follow('ada')], [200, 200, 429])
      deepStrictEqual([await follow('bob'), await follow('bob'), await follow('bob')], [200, 200, 429])
      equal(responses.length, 6)
    },
    { handler: { maxFollowers: 8 }, context },
  )
})

const clientOf = (url: string, options = {}) => new LogClient({ baseUrl: url, token: 't', ...key, batchMs: 5, ...options })

test('the client sends lines in order, in batches, and close ends the log', () =>
  withServer(async ({ store, url, requests }) => {
    const client = clientOf(url, { batchMs: 50 })
    for (let i = 0; i < 1_000; i++) client.append(`line ${i}`)
    deepStrictEqual(await client.close(), { flushed: true })
    equal(await textOf(store), Array.from({ length: 1_000 }, (_, i) => `line ${i}\n`).join(''))
    equal((await store.read(key)).ended, true)
    ok(requests() <= 4, `${requests()} requests`)
  }))

test('the client sends a line without close, and further lines after it', () =>
  withServer(async ({ store, url }) => {
    const client = clientOf(url)
    const lines = store.follow(key)
    for (const line of ['one', 'two']) {
      client.append(line)
      equal((await lines.next()).value?.toString(), `${line}\n`)
    }
    await client.close({ end: false })
    equal((await store.read(key)).ended, false)
    await lines.return()
  }))

test('a second client continues where the first one stopped', () =>
  withServer(async ({ store, url }) => {
    for (const name of ['first', 'second']) {
      const client = clientOf(url)
      client.append(name)
      await client.close({ end: false })
    }
    equal(await textOf(store), 'first\nsecond\n')
  }))

test('the client loses and duplicates no line during an outage or when responses are lost', () =>
  withServer(async ({ store, url, server, setDown }) => {
    let errors = 0
    const client = clientOf(url, { onError: () => errors++ })
    const lines = store.follow(key)
    client.append('before')
    await lines.next()
    // The request is handled, its response is not delivered.
    server.prependOnceListener('request', (_, res) => {
      res.end = (() => res.destroy()) as typeof res.end
    })
    client.append('response lost')
    equal((await lines.next()).value?.toString(), 'response lost\n')
    setDown(true)
    client.append('during')
    await eventually(() => errors >= 2, 'two failed requests')
    setDown(false)
    client.append('after')
    deepStrictEqual(await client.close(), { flushed: true })
    equal(await textOf(store), 'before\nresponse lost\nduring\nafter\n')
    await lines.return()
  }))

test('the client drops the oldest lines with a mark while the store does not respond (invariant 10)', () =>
  withServer(async ({ store, url, setDown }) => {
    setDown(true)
    let failed: () => void = () => undefined
    const firstError = new Promise<void>(resolve => (failed = resolve))
    const client = clientOf(url, { maxPendingBytes: 1_000, batchBytes: 100, onError: () => failed() })
    client.append('first')
    await firstError
    for (let i = 0; i < 1_000; i++) client.append(`line ${String(i).padStart(4, '0')}`)
    setDown(false)
    await client.close()
    const text = await textOf(store)
    match(text, /^first\n\[oarlock\] 900 lines \(9000 bytes\) were dropped here: the log store did not respond\nline 0900\n/)
    ok(text.endsWith('line 0999\n'))
  }))

test('short lines that wait for the store are limited by their number too', () =>
  withServer(async ({ store, url, setDown }) => {
    setDown(true)
    const failed = Promise.withResolvers<void>()
    const client = clientOf(url, { onError: () => failed.resolve() })
    client.append('first')
    await failed.promise
    for (let i = 0; i < 150_000; i++) client.append('y')
    setDown(false)
    await client.close()
    match(await textOf(store), /^first\n\[oarlock\] 50000 lines \(100000 bytes\) were dropped here: the log store did not respond\ny\n/)
  }))

test('the client sends nothing more when the log is full, and the log states how much was dropped in all', () =>
  withServer(
    async ({ store, url, requests }) => {
      const client = new LogClient({ baseUrl: url, token: 't', ...key, batchMs: 1 })
      for (let i = 0; i < 12; i++) client.append('123456789')
      await eventually(() => client.isFull, 'the log to be full')
      const before = requests()
      for (let i = 0; i < 1_000; i++) client.append('123456789')
      client.drop(5_000)
      deepStrictEqual(await client.close(), { flushed: true })
      equal(requests() - before, 1, 'only the end is sent')
      const { received, text } = { received: await store.receivedBytes(key), text: await textOf(store) }
      equal(received, 120)
      match(text, /\[oarlock\] log truncated: limit of 100 bytes reached, 15020 more bytes dropped\n$/)
    },
    { limits: { bytesPerRun: 100 } },
  ))

test('close resolves within its timeout when the store does not respond', () =>
  withServer(async ({ url, setDown }) => {
    setDown(true)
    const client = clientOf(url)
    client.append('x')
    const startMs = performance.now()
    deepStrictEqual(await client.close({ timeoutMs: 200 }), { flushed: false })
    ok(performance.now() - startMs < 2_000)
    client.append('after close')
  }))

test('the client reports once that the log has ended', () =>
  withServer(async ({ store, url }) => {
    await store.end(key)
    const errors: string[] = []
    const client = clientOf(url, { onError: (error: Error) => errors.push(error.message) })
    client.append('late')
    await client.close()
    deepStrictEqual(errors, ['the log has ended; the remaining lines are dropped'])
  }))
