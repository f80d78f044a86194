import { deepStrictEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { test } from 'node:test'
import { LockedError, StaleEpochError } from './index.ts'
import { backendOf, clientOf, lockInfo, withStateServer } from './state-server.testing.ts'

test('serves the requests of Terraform: lock, write, read, unlock, delete', () =>
  withStateServer(async server => {
    const call = backendOf(server)
    equal((await call('GET')).status, 204)
    equal((await call('LOCK', '', JSON.stringify(lockInfo('a')))).status, 200)
    const other = await call('LOCK', '', JSON.stringify(lockInfo('b')))
    deepStrictEqual([other.status, other.json], [423, lockInfo('a')])
    const state = '{"version":4,"serial":1}'
    const md5 = createHash('md5').update(state).digest('base64')
    deepStrictEqual((await call('POST', '?ID=a', state, { 'content-md5': md5 })).json, { version: 1 })
    const wrong = await call('POST', '?ID=b', '{"version":4,"serial":2}')
    equal(wrong.status, 409)
    match(wrong.text, /held by ada@host for OperationTypeApply \(lock id a\); the content is stored as orphaned version 2/)
    equal((await call('POST', '', '{"version":4,"serial":3}')).status, 423)
    equal((await call('GET')).text, state)
    const notMine = await call('UNLOCK', '', JSON.stringify(lockInfo('b')))
    equal(notMine.status, 409)
    match(notMine.text, /held by ada@host/)
    equal((await call('UNLOCK', '', '')).status, 400)
    equal((await call('UNLOCK', '', JSON.stringify({ ID: 'a' }))).status, 200)
    equal((await call('UNLOCK', '', JSON.stringify({ ID: 'a' }))).status, 200)
    equal((await call('DELETE')).status, 200)
    equal((await call('GET')).status, 204)
    equal((await call('GET', '/versions/1')).text, state)
    equal((await call('GET', '/orphans/2')).text, '{"version":4,"serial":2}')
    equal((await call('GET', '/orphans/1')).status, 404)
    deepStrictEqual(
      (((await call('GET', '/versions')).json.versions ?? []) as { version: number }[]).map(({ version }) => version),
      [4, 1],
    )
    equal((await backendOf({ ...server, token: 'user' })('GET', '/token')).json.token, server.token)
    equal((await call('GET', '/token')).status, 403)
    equal((await call('GET', '/token/1')).status, 404)
    equal((((await call('GET', '/orphans')).json.orphans ?? []) as unknown[]).length, 2)
  }))

test('a rotated token is invalid immediately, or after a grace period, and no old token gets a new one', async () => {
  let nowMs = 1_000
  await withStateServer(
    async ({ url, token, store }) => {
      const first = backendOf({ url, token })
      const user = backendOf({ url, token: 'user' })
      equal((await first('POST', '/token')).status, 403)
      const rotated = (await user('POST', '/token')).json.token as string
      const second = backendOf({ url, token: rotated })
      deepStrictEqual([(await first('GET', '/versions')).status, (await second('GET', '/versions')).status], [403, 200])
      const third = (await user('POST', '/token?graceSeconds=60')).json
      equal(third.previousUntilMs, 61_000)
      deepStrictEqual([(await second('GET', '/versions')).status, (await second('GET', '/token')).status], [200, 403])
      nowMs = 61_000
      deepStrictEqual([(await second('GET', '/versions')).status, await store.checkStackToken('uid', third.token as string)], [403, true])
      equal(new Set([token, rotated, third.token]).size, 3)
    },
    { nowMs: () => nowMs },
  )
})

test('a fence that a Run with a wrong epoch has raised is reset by a user with the right, not by the token or while a Run holds the lock', () =>
  withStateServer(async server => {
    const user = backendOf({ ...server, token: 'user' })
    const [wrong, last, next] = [clientOf(server, 2 ** 31 - 1), clientOf(server, 7), clientOf(server, 8)]
    await wrong.lock()
    await wrong.write(Buffer.from('{"serial":1}'))
    deepStrictEqual((await user('GET', '/fence')).json, { minEpoch: 2 ** 31 - 1, maxSeenEpoch: 2 ** 31 - 1 })
    equal((await user('PUT', '/fence?lastEpoch=7')).status, 423)
    await wrong.unlock()
    await rejects(next.lock(), StaleEpochError)
    equal((await backendOf(server)('PUT', '/fence?lastEpoch=7')).status, 403)
    equal((await user('PUT', '/fence')).status, 400)
    equal((await user('PUT', `/fence?lastEpoch=${2 ** 31 - 1}`)).status, 400)
    equal((await user('DELETE', '/fence')).status, 405)
    const reset = { kind: 'reset', previous: { minEpoch: 2 ** 31 - 1, maxSeenEpoch: 2 ** 31 - 1 }, fence: { minEpoch: 8, maxSeenEpoch: 7 } }
    deepStrictEqual((await user('PUT', '/fence?lastEpoch=7')).json, reset)
    await rejects(last.write(Buffer.from('{"late":1}')), StaleEpochError)
    await next.lock()
    await next.write(Buffer.from('{"serial":2}'))
    equal((await user('GET')).text, '{"serial":2}')
    equal((await user('PUT', '/fence?lastEpoch=8&force=true')).status, 200)
    await rejects(next.write(Buffer.from('{"serial":3}')), StaleEpochError)
    await Promise.all([wrong, last, next].map(client => client.close()))
  }))

test('a Run starts from no state that is missing or older than it requires, until a user with the right writes or accepts one', async () => {
  let stateVersion = 0
  await withStateServer(
    async server => {
      const user = backendOf({ ...server, token: 'user' })
      const rejected = (code: string) => ({ status: 409, code })
      stateVersion = 3
      await rejects(clientOf(server, 1).lock(), rejected('StateMissing'))
      await rejects(clientOf(server, 1).read(), rejected('StateMissing'))
      await rejects(clientOf(server, 1).readInventory(), rejected('StateMissing'))
      equal((await backendOf(server)('POST', '/accept')).status, 403)
      equal((await user('GET', '/accept')).status, 405)
      deepStrictEqual((await user('POST', '/accept', '', { 'x-user': 'ada' })).json, { version: 4 })
      equal((await clientOf(server, 1).read())?.bytes, undefined)

      await clientOf(server, 1).lock()
      equal(await clientOf(server, 1).writeInventory(Buffer.from('{"a":1}')), 5)
      await clientOf(server, 1).unlock()
      stateVersion = 9
      await rejects(clientOf(server, 2).lock(), rejected('StateRegressed'))
      deepStrictEqual((await user('POST', '/accept', '', { 'x-user': 'ada' })).json, { version: 10 })
      equal((await clientOf(server, 2).readInventory())?.bytes.toString(), '{"a":1}')

      stateVersion = 20
      await rejects(clientOf(server, 2).read(), rejected('StateRegressed'))
      deepStrictEqual((await user('POST', '', '{"version":4,"serial":1}')).json, { version: 21 })
      await clientOf(server, 2).lock()
      deepStrictEqual(
        ((await user('GET', '/versions')).json.versions as { version: number; author: string }[]).map(({ version, author }) => [
          version,
          author,
        ]),
        [
          [21, 'user'],
          [10, 'user:ada'],
          [5, 'run-1'],
          [4, 'user:ada'],
        ],
      )
    },
    { stateVersion: () => stateVersion },
  )
})

test('a Run and a user lock each other out, and only an abandoned lock is broken (invariant 4)', () =>
  withStateServer(async server => {
    const call = backendOf(server)
    const client = clientOf(server, 1)
    await client.lock()
    const held = await call('LOCK', '', JSON.stringify(lockInfo('a')))
    equal(held.status, 423)
    match(held.text, /"ID":"oarlock-run-run-1".*"Who":"run run-1 \(epoch 1\)".*"Created":"20\d\d-.*"Path":"apps\/net"/)
    const forced = await call('UNLOCK', '', JSON.stringify({ ID: 'oarlock-run-run-1' }))
    equal(forced.status, 409)
    match(forced.text, /cancel the run instead/)
    server.abandoned.add('run-1')
    equal((await call('UNLOCK', '', JSON.stringify({ ID: 'oarlock-run-run-1' }))).status, 200)
    await rejects(client.write(Buffer.from('{"late":1}')), StaleEpochError)
    equal((await call('LOCK', '', JSON.stringify(lockInfo('a')))).status, 200)
    const next = clientOf(server, 2)
    await rejects(
      next.lock(),
      (error: LockedError) => error instanceof LockedError && error.holder?.kind === 'User' && error.holder.id === 'a',
    )
    const { json } = await call('GET', '/lock')
    deepStrictEqual(json.info, lockInfo('a'))
    await Promise.all([client.close(), next.close()])
  }))

type BadRequest = { name: string; method?: string; path?: string; body?: string; headers?: Record<string, string>; want: number }
const badRequests: BadRequest[] = [
  { name: 'no token', headers: { authorization: '' }, want: 401 },
  { name: 'a wrong token', headers: { authorization: 'Basic eDp5' }, want: 403 },
  { name: 'a Basic token that is not base64', headers: { authorization: 'Basic %%%' }, want: 401 },
  { name: 'a stack that does not exist (404 would mean "no state yet")', path: '/state/apps/other', want: 403 },
  { name: 'an unsupported method', method: 'PATCH', want: 405 },
  { name: 'an unknown path', path: '/state/apps/net/what', want: 404 },
  { name: 'no stack', path: '/state/apps', want: 400 },
  { name: 'an invalid name', path: '/state/apps/NET', want: 400 },
  { name: 'a path traversal', path: '/state/apps/..%2f..', want: 400 },
  { name: 'invalid percent-encoding', path: '/state/apps/%zz', want: 400 },
  { name: 'not a state', method: 'POST', body: 'hello', want: 400 },
  { name: 'an empty state', method: 'POST', body: '', want: 400 },
  { name: 'a state with a wrong digest', method: 'POST', body: '{}', headers: { 'content-md5': 'AAAA' }, want: 400 },
  { name: 'too large', method: 'POST', body: `{"x":"${'y'.repeat(2_000)}"}`, want: 413 },
  { name: 'an empty lock id', method: 'POST', path: '/state/apps/net?ID=', body: '{}', want: 400 },
  { name: 'a lock without info', method: 'LOCK', body: 'null', want: 400 },
  { name: 'a lock without an id', method: 'LOCK', body: '{"ID":7}', want: 400 },
  { name: 'a version that is not a number', path: '/state/apps/net/versions/x', want: 400 },
  { name: 'a version that does not exist', path: '/state/apps/net/versions/99', want: 404 },
  { name: "a worker's path with a user's token", path: '/state/apps/net/run/run-1/state', headers: { 'oarlock-epoch': '1' }, want: 403 },
  { name: 'a run without an epoch', path: '/state/apps/net/run/run-1/state', want: 400 },
  { name: 'a negative epoch', path: '/state/apps/net/run/run-1/state', headers: { 'oarlock-epoch': '-1' }, want: 400 },
  { name: 'an invalid plan digest', path: '/state/apps/net/run/run-1/plan/..%2fx', headers: { 'oarlock-epoch': '1' }, want: 400 },
]
test('responds to a bad request with 4xx and {error:{code,message}}', () =>
  withStateServer(
    async ({ url, token }) => {
      for (const { name, method = 'GET', path = '/state/apps/net', body, headers, want } of badRequests) {
        const authorization = `Bearer ${token}`
        const response = await fetch(url + path, { method, body, headers: { authorization, ...headers } })
        equal(response.status, want, name)
        const { error } = (await response.json()) as { error: { code: string; message: string } }
        ok(error.code && error.message && !error.message.includes(token), name)
      }
    },
    { limits: { maxBytes: 1_000 } },
  ))

test('rejects a chunked body above the limit with 413 and an idle one with 408', () =>
  withStateServer(
    async ({ port, token, store }) => {
      const post = async (body: string) => {
        const socket = connect(port, '127.0.0.1')
        socket.on('error', () => undefined)
        socket.write(
          `POST /state/apps/net HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
        )
        return await new Promise<string>(resolve => {
          let text = ''
          socket.on('data', bytes => (text += bytes.toString()))
          socket.on('close', () => resolve(text))
        })
      }
      match(await post(`800\r\n{${'x'.repeat(2_046)}}\r\n`), /^HTTP\/1.1 413 /)
      match(await post('4\r\n{"a"\r\n'), /^HTTP\/1.1 408 /)
      deepStrictEqual(await store.versions('uid'), [])
    },
    { limits: { maxBytes: 1_000 }, handler: { bodyIdleMs: 100 } },
  ))

test('reports an internal error and responds 500 without its message', () =>
  withStateServer(
    async server => {
      const { status, json } = await backendOf(server)('GET')
      deepStrictEqual([status, json], [500, { error: { code: 'InternalError', message: 'the server failed to handle the request' } }])
      equal(server.errors.splice(0).length, 1)
    },
    { handler: { authorize: () => Promise.reject(new Error('secret detail')) } },
  ))

test('reports the reason of each write that is stored as an orphaned version, and of no other', async () => {
  const reasons: string[] = []
  await withStateServer(
    async server => {
      const [earlier, later] = [clientOf(server, 1), clientOf(server, 2)]
      await later.lock()
      await later.write(Buffer.from('{"serial":1}'))
      deepStrictEqual(reasons, [])
      await rejects(earlier.write(Buffer.from('{"serial":2}')), StaleEpochError)
      deepStrictEqual(reasons, ['StaleEpoch'])
      equal((await backendOf(server)('POST', '', '{"version":4,"serial":3}')).status, 423)
      deepStrictEqual(reasons, ['StaleEpoch', 'NotLockHolder'])
      await Promise.all([earlier, later].map(client => client.close()))
    },
    { handler: { onWriteRejected: reason => reasons.push(reason) } },
  )
})

test('a worker keeps what its Run applies, and that of a later Run reads it; no user does', () =>
  withStateServer(async server => {
    const [first, second] = [clientOf(server, 1), clientOf(server, 2)]
    equal(await second.getConfiguration(), undefined)
    await first.lock()
    await first.putConfiguration(Buffer.from('{"format":1}'))
    await first.unlock()
    await second.lock()
    equal((await second.getConfiguration())?.toString(), '{"format":1}')
    await rejects(first.putConfiguration(Buffer.from('{}')), StaleEpochError)
    equal((await backendOf({ ...server, token: 'user' })('GET', '/configuration')).status, 404)
    await Promise.all([first.close(), second.close()])
  }))
