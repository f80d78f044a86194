import { deepStrictEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCertificate } from '../../../test/support/make-certificate.ts'
import {
  createStateHandler,
  LockedError,
  openStateStore,
  type RunHolder,
  StaleEpochError,
  StateClient,
  StateClientError,
  type StateHandlerOptions,
  type StateLimits,
  type StateStore,
  salvageState,
  streamStateFile,
} from './index.ts'

type Setup = {
  store: StateStore
  url: string
  port: number
  token: string
  server: Server
  gone: Set<string>
  errors: unknown[]
  directory: string
  ca?: string
}

/** The hub's part, as small as it can be: one stack, its token, and a worker who is known by his bearer token. */
async function withServer(
  work: (setup: Setup) => Promise<void>,
  options: { limits?: Partial<StateLimits>; handler?: Partial<StateHandlerOptions>; tls?: boolean } = {},
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-state-http-'))
  const store = await openStateStore({ directory, key: Buffer.alloc(32, 7), limits: options.limits })
  const gone = new Set<string>()
  const errors: unknown[] = []
  const handler = createStateHandler({
    store,
    authorize: async ({ stack, basicPassword = '', runName }) => {
      if (stack !== 'net') return { allowed: false, code: 404, message: `stack ${stack} not found` }
      if (runName !== undefined && basicPassword === 'worker') return { allowed: true, stackUid: 'uid', access: 'run' }
      if (store.checkStackToken('uid', basicPassword)) return { allowed: true, stackUid: 'uid', access: 'person' }
      return { allowed: false, code: basicPassword === '' ? 401 : 403, message: 'the token is not of this stack' }
    },
    isHolderGone: async ({ runName }: RunHolder) => gone.has(runName),
    onError: error => errors.push(error),
    ...options.handler,
  })
  const listener: RequestListener = (req, res) => void handler(req, res, { user: undefined })
  const tls = options.tls ? makeCertificate(directory) : undefined
  const ca = tls?.cert
  const server = tls ? createTlsServer({ cert: tls.cert, key: tls.key }, listener) : createServer(listener)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  try {
    const url = `${ca === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
    await work({ store, url, port, token: store.stackToken('uid'), server: server as Server, gone, errors, directory, ca })
    deepStrictEqual(errors, [])
  } finally {
    server.closeAllConnections()
    server.close()
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

const backendOf = ({ url, token }: Setup) => {
  const authorization = `Basic ${Buffer.from(`any:${token}`).toString('base64')}`
  return async (method: string, path = '', body?: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}/state/apps/net${path}`, { method, body, headers: { authorization, ...headers } })
    const text = await response.text()
    return { status: response.status, text, json: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {} }
  }
}
const clientOf = ({ url, ca }: Setup, epoch: number, options = {}) =>
  new StateClient({
    baseUrl: url,
    caCertificate: ca,
    token: 'worker',
    namespace: 'apps',
    stack: 'net',
    runName: `run-${epoch}`,
    epoch,
    deadlineMs: 5_000,
    ...options,
  })

const lockInfo = (ID: string) => ({
  ID,
  Operation: 'OperationTypeApply',
  Who: 'ada@host',
  Version: '1.11.4',
  Created: '2026-11-21T09:00:00Z',
  Path: '',
})

test('backend: the life of a state as Terraform lives it', () =>
  withServer(async setup => {
    const call = backendOf(setup)
    equal((await call('GET')).status, 204)
    equal((await call('LOCK', '', JSON.stringify(lockInfo('a')))).status, 200)
    const other = await call('LOCK', '', JSON.stringify(lockInfo('b')))
    deepStrictEqual([other.status, other.json], [423, lockInfo('a')])
    const state = '{"version":4,"serial":1}'
    const md5 = createHash('md5').update(state).digest('base64')
    deepStrictEqual((await call('POST', '?ID=a', state, { 'content-md5': md5 })).json, { version: 1 })
    const wrong = await call('POST', '?ID=b', '{"version":4,"serial":2}')
    equal(wrong.status, 409)
    match(wrong.text, /held by ada@host for OperationTypeApply \(lock id a\); the content is kept as orphan 2/)
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
    equal((await call('GET', '/token')).json.token, setup.token)
    equal((await call('GET', '/token/1')).status, 404)
    equal((((await call('GET', '/orphans')).json.orphans ?? []) as unknown[]).length, 2)
  }))

test('backend: a run blocks people and people block a run; a lock is only broken over a dead body (invariant 4)', () =>
  withServer(async setup => {
    const call = backendOf(setup)
    const client = clientOf(setup, 1)
    await client.lock()
    const held = await call('LOCK', '', JSON.stringify(lockInfo('a')))
    equal(held.status, 423)
    match(held.text, /"ID":"oarlock-run-run-1".*"Who":"run run-1 \(epoch 1\)".*"Created":"20\d\d-.*"Path":"apps\/net"/)
    const forced = await call('UNLOCK', '', JSON.stringify({ ID: 'oarlock-run-run-1' }))
    equal(forced.status, 409)
    match(forced.text, /cancel the run instead/)
    setup.gone.add('run-1')
    equal((await call('UNLOCK', '', JSON.stringify({ ID: 'oarlock-run-run-1' }))).status, 200)
    await rejects(client.write(Buffer.from('{"late":1}')), StaleEpochError)
    equal((await call('LOCK', '', JSON.stringify(lockInfo('a')))).status, 200)
    const next = clientOf(setup, 2)
    await rejects(
      next.lock(),
      (error: LockedError) => error instanceof LockedError && error.holder?.kind === 'Person' && error.holder.id === 'a',
    )
    const { json } = await call('GET', '/lock')
    deepStrictEqual(json.info, lockInfo('a'))
    await Promise.all([client.close(), next.close()])
  }))

type Bad = { name: string; method?: string; path?: string; body?: string; headers?: Record<string, string>; want: number }
const badRequests: Bad[] = [
  { name: 'no token', headers: { authorization: '' }, want: 401 },
  { name: 'a wrong token', headers: { authorization: 'Basic eDp5' }, want: 403 },
  { name: 'a token that is no base64 pair', headers: { authorization: 'Basic %%%' }, want: 401 },
  { name: 'a stack that is not there is not "no state yet"', path: '/state/apps/other', want: 403 },
  { name: 'another method', method: 'PATCH', want: 405 },
  { name: 'no such path', path: '/state/apps/net/what', want: 404 },
  { name: 'no stack', path: '/state/apps', want: 400 },
  { name: 'a name that is none', path: '/state/apps/NET', want: 400 },
  { name: 'a path out', path: '/state/apps/..%2f..', want: 400 },
  { name: 'wrong percent-encoding', path: '/state/apps/%zz', want: 400 },
  { name: 'not a state', method: 'POST', body: 'hello', want: 400 },
  { name: 'an empty state', method: 'POST', body: '', want: 400 },
  { name: 'a damaged state', method: 'POST', body: '{}', headers: { 'content-md5': 'AAAA' }, want: 400 },
  { name: 'too large', method: 'POST', body: `{"x":"${'y'.repeat(2_000)}"}`, want: 413 },
  { name: 'an empty lock id', method: 'POST', path: '/state/apps/net?ID=', body: '{}', want: 400 },
  { name: 'a lock without info', method: 'LOCK', body: 'null', want: 400 },
  { name: 'a lock without an id', method: 'LOCK', body: '{"ID":7}', want: 400 },
  { name: 'a version that is no number', path: '/state/apps/net/versions/x', want: 400 },
  { name: 'a version that is not there', path: '/state/apps/net/versions/99', want: 404 },
  { name: "a worker's path with a person's token", path: '/state/apps/net/run/run-1/state', headers: { 'oarlock-epoch': '1' }, want: 403 },
  { name: 'a run without an epoch', path: '/state/apps/net/run/run-1/state', want: 400 },
  { name: 'a negative epoch', path: '/state/apps/net/run/run-1/state', headers: { 'oarlock-epoch': '-1' }, want: 400 },
  { name: 'a plan digest that is none', path: '/state/apps/net/run/run-1/plan/..%2fx', headers: { 'oarlock-epoch': '1' }, want: 400 },
]
test("bad input is the client's fault: never a 500, always {error:{code,message}}", () =>
  withServer(
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

test('a body without an announced length is cut off at the limit, one that stands still is answered', () =>
  withServer(
    async ({ port, token, store }) => {
      const talk = async (body: string) => {
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
      match(await talk(`800\r\n{${'x'.repeat(2_046)}}\r\n`), /^HTTP\/1.1 413 /)
      match(await talk('4\r\n{"a"\r\n'), /^HTTP\/1.1 408 /)
      deepStrictEqual(await store.versions('uid'), [])
    },
    { limits: { maxBytes: 1_000 }, handler: { bodyIdleMs: 100 } },
  ))

test('a failure of ours is 500 without its text, and reported', () =>
  withServer(
    async setup => {
      const { status, json } = await backendOf(setup)('GET')
      deepStrictEqual([status, json], [500, { error: { code: 'InternalError', message: 'the request failed inside the server' } }])
      equal(setup.errors.splice(0).length, 1)
    },
    { handler: { authorize: () => Promise.reject(new Error('secret detail')) } },
  ))

test('client: a failure inside the server is tried again', () => {
  let failures = 2
  return withServer(
    async setup => {
      const client = clientOf(setup, 1)
      equal(await client.write(Buffer.from('{}')), 1)
      equal(setup.errors.splice(0).length, 2)
      await client.close()
    },
    {
      handler: {
        authorize: async () => {
          if (failures-- > 0) throw new Error('the API server restarts')
          return { allowed: true, stackUid: 'uid', access: 'run' }
        },
      },
    },
  )
})

test('client over TLS: lock, versions, inventory, plans', () =>
  withServer(
    async setup => {
      const client = clientOf(setup, 1)
      equal(await client.read(), undefined)
      deepStrictEqual(await client.lock(), {})
      equal(await client.write(Buffer.from('{"serial":1}')), 1)
      equal(await client.write(Buffer.from('{"serial":1}')), 1)
      equal(await client.write(Buffer.from('{"serial":2}')), 2)
      const { version, epoch, bytes } = (await client.read()) ?? { bytes: '' }
      deepStrictEqual([version, epoch, bytes.toString()], [2, 1, '{"serial":2}'])
      equal(await client.readInventory(), undefined)
      await client.writeInventory(Buffer.from('[]'))
      equal((await client.readInventory())?.bytes.toString(), '[]')
      equal(await client.getPlan('sha256:abc'), undefined)
      await client.putPlan('sha256:abc', Buffer.from('plan'))
      equal((await client.getPlan('sha256:abc'))?.toString(), 'plan')
      await client.unlock()
      await client.unlock()
      await client.close()
      const stranger = clientOf({ ...setup, ca: undefined }, 1, { deadlineMs: 0 })
      await rejects(stranger.read(), { code: 'Unreachable' })
      await stranger.close()
    },
    { tls: true },
  ))

test('client: an older epoch learns it, and its content is kept (invariant 3); a held lock names its holder', () =>
  withServer(async setup => {
    const [old, next] = [clientOf(setup, 1), clientOf(setup, 2)]
    await old.lock()
    await rejects(
      next.lock(),
      (error: LockedError) => error instanceof LockedError && error.holder?.kind === 'Run' && error.holder.runName === 'run-1',
    )
    setup.gone.add('run-1')
    deepStrictEqual(await next.lock(), { broke: { kind: 'Run', runName: 'run-1', epoch: 1 } })
    await next.write(Buffer.from('{"serial":2}'))
    await rejects(
      old.write(Buffer.from('{"late":true}')),
      (error: StaleEpochError) => error instanceof StaleEpochError && error.orphan === 2,
    )
    await rejects(old.lock(), StaleEpochError)
    await rejects(old.unlock(), LockedError)
    equal((await setup.store.readVersion({ stackUid: 'uid', version: 2 }))?.bytes.toString(), '{"late":true}')
    await Promise.all([old.close(), next.close()])
  }))

test('client: tries again until its deadline; a late copy of an older write does not overtake a newer one', () =>
  withServer(async setup => {
    const client = clientOf(setup, 1)
    let lost = 0
    const loseAnswers = (_: unknown, res: { end: unknown; destroy(): void }) => {
      if (++lost > 2) return
      res.end = () => res.destroy()
    }
    setup.server.prependListener('request', loseAnswers)
    const [first, second] = await Promise.all([client.write(Buffer.from('{"serial":1}')), client.write(Buffer.from('{"serial":2}'))])
    deepStrictEqual([first, second, lost], [1, 2, 4])
    const late = await fetch(`${setup.url}/state/apps/net/run/run-1/state`, {
      ...{
        method: 'PUT',
        body: '{"serial":1}',
        headers: { authorization: 'Bearer worker', 'oarlock-epoch': '1', 'oarlock-sequence': '1' },
      },
    })
    equal(late.status, 200)
    equal((await client.read())?.bytes.toString(), '{"serial":2}')
    await client.close()
    const nowhere = new StateClient({
      baseUrl: 'http://127.0.0.1:1',
      token: 't',
      namespace: 'a',
      stack: 'b',
      runName: 'c',
      epoch: 1,
      deadlineMs: 250,
    })
    const startMs = performance.now()
    await rejects(nowhere.read(), (error: StateClientError) => error instanceof StateClientError && error.code === 'Unreachable')
    ok(performance.now() - startMs < 3_000)
    const abort = new AbortController()
    const aborted = nowhere.read({ deadlineMs: 60_000, signal: abort.signal })
    abort.abort(new Error('the run is over'))
    await rejects(aborted, { message: 'the run is over' })
    await nowhere.close()
  }))

test('from the write of a state file to its acknowledgement, over TLS and onto the disk', t =>
  withServer(
    async setup => {
      const client = clientOf(setup, 1)
      const path = join(setup.directory, 'terraform.tfstate')
      let acknowledged: (text: string) => void = () => undefined
      const upload = async (bytes: Buffer) => {
        await client.write(bytes)
        acknowledged(bytes.toString())
      }
      const stream = streamStateFile({ path, upload, onError: error => t.diagnostic(String(error)) })
      const tookMs: number[] = []
      for (let i = 0; i < 30; i++) {
        const text = JSON.stringify({ serial: i, text: 'resource '.repeat(11_000) })
        const arrived = new Promise<void>(resolve => {
          acknowledged = got => got === text && resolve()
        })
        writeFileSync(path, text)
        const startMs = performance.now()
        await arrived
        tookMs.push(performance.now() - startMs)
      }
      stream.close()
      await client.close()
      tookMs.sort((a, b) => a - b)
      t.diagnostic(`100 KB: median ${tookMs[15]?.toFixed(1)} ms, worst ${tookMs.at(-1)?.toFixed(1)} ms from write to acknowledged`)
      ok((tookMs[15] ?? 0) < 200)
    },
    { tls: true },
  ))

test('salvage: the last state of a dead worker is saved once, or kept as an orphan; a torn one is kept aside, a missing one said', () =>
  withServer(
    async setup => {
      const path = join(setup.directory, 'terraform.tfstate')
      const options = { path, url: `${setup.url}/state/apps/net/run/run-1/state`, token: 'worker', caCertificate: setup.ca, epoch: 1 }
      deepStrictEqual(await salvageState(options), { kind: 'nothing', why: `${path} does not exist` })
      writeFileSync(path, '')
      deepStrictEqual(await salvageState(options), { kind: 'nothing', why: `${path} is empty` })
      writeFileSync(path, '{"serial":')
      deepStrictEqual(await salvageState(options), { kind: 'orphaned', orphan: 1 })
      deepStrictEqual(await salvageState(options), { kind: 'orphaned', orphan: 1 })
      const [torn] = await setup.store.orphans('uid')
      deepStrictEqual([torn?.reason, torn?.author, torn?.epoch], ['Torn', 'run-1', 1])
      equal((await setup.store.readVersion({ stackUid: 'uid', version: 1 }))?.bytes.toString(), '{"serial":')
      equal(await setup.store.readVersion({ stackUid: 'uid' }), undefined, 'it is never current')
      writeFileSync(path, '{"serial":5}')
      deepStrictEqual(await salvageState(options), { kind: 'saved', version: 2 })
      deepStrictEqual(await salvageState(options), { kind: 'saved', version: 2 })
      writeFileSync(path, '{"serial":6}')
      deepStrictEqual(await salvageState(options), { kind: 'saved', version: 3 })
      const late = clientOf(setup, 1)
      equal(await late.write(Buffer.from('{"serial":4}')), 3, 'what the dead worker sent does not overtake the salvaged file')
      await setup.store.lock({ stackUid: 'uid', holder: { kind: 'Run', runName: 'run-2', epoch: 2 } }, async () => true)
      writeFileSync(path, '{"serial":7}')
      deepStrictEqual(await salvageState(options), { kind: 'orphaned', orphan: 4 })
      await rejects(salvageState({ ...options, token: 'wrong', deadlineMs: 150 }), /could not upload .* it answered 403/)
      await rejects(salvageState({ ...options, url: 'https://127.0.0.1:1/x', deadlineMs: 150 }), /could not upload/)
      await late.close()
    },
    { tls: true },
  ))

test('salvage imports nothing heavy', () => {
  const text = readFileSync(join(import.meta.dirname, 'salvage.ts'), 'utf8')
  deepStrictEqual(
    [...text.matchAll(/(?:from|import\() ?'([^']+)'/g)].map(([, name]) => name),
    ['node:fs/promises', 'node:https'],
  )
})
